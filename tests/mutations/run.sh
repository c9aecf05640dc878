#!/usr/bin/env bash
# Breaks the operators, one fault at a time, and demands that the named test turns red.
#
#   tests/mutations/run.sh [BUILD_DIR] [PATTERN]     BUILD_DIR: a configured build (default build/dev); PATTERN: only files that match
#
# The faults stand in operators.txt. First everything is built and the named tests must be green; then a fault costs the compilation of what
# it touches, the links, and its tests. Every file is put back, whatever happens, and all is built again at the end.
# Exit code 9 when a fault goes unnoticed, 1 when a test is red without any.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/dev}
pattern=${2:-}
list=$root/tests/mutations/operators.txt
kept=$(mktemp)
broken=""

# The file gets a new time with its old text, so that it is compiled again. A signal finds the broken file or the whole one.
restore() {
  if [[ -n $broken ]]; then cp "$kept" "$broken.whole" && mv "$broken.whole" "$broken"; fi
  broken=""
}
end() {
  trap '' INT TERM HUP
  restore
  rm -f "$kept"
}
trap end EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

trim() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' <<<"$1"; }
build_target() { cmake --build "$build" --target "$1" >/dev/null 2>&1; }
passes() { "$build/bin/test_operators" --test-case="$1" >/dev/null 2>&1; }

files=() expressions=() filters=()
while IFS='|' read -r file expression filter; do
  file=$(trim "$file")
  if [[ -z $file || $file == \#* || ! $file =~ $pattern ]]; then continue; fi
  files+=("$file")
  expressions+=("$(trim "$expression")")
  filters+=("$(trim "$filter")")
done <"$list"

build_target test_operators || { echo "run.sh: $build does not build test_operators" >&2; exit 1; }
while IFS= read -r filter; do
  passes "$filter" || { echo "run.sh: '$filter' is red without a fault" >&2; exit 1; }
done < <(printf '%s\n' "${filters[@]}" | sort -u)

missed=0
printf '%-45s %-50s %s\n' file test outcome
for i in "${!files[@]}"; do
  path=$root/lib/mxtrain/operators/${files[i]}
  cp "$path" "$kept"
  broken=$path
  sed -i -e "${expressions[i]}" "$path"
  outcome=red
  if cmp -s "$path" "$kept"; then
    outcome="the expression changes nothing"
  elif ! build_target test_operators; then  # the tests too: one may include the header that is broken
    outcome="does not compile"
  elif passes "${filters[i]}"; then
    outcome="NOT NOTICED"
  fi
  [[ $outcome == red ]] || missed=$((missed + 1))
  restore
  printf '%-45s %-50s %s\n' "${files[i]}" "${filters[i]}" "$outcome"
done
build_target test_operators
echo "$((${#files[@]} - missed)) of ${#files[@]} faults turn their test red"
if ((missed > 0)); then exit 9; fi
