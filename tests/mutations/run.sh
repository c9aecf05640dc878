#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Breaks a module, one fault at a time, and demands that the named tests turn red.
#
#   tests/mutations/run.sh MODULE [BUILD_DIR] [PATTERN]     BUILD_DIR: a configured build (default build/asan); PATTERN: only lines that match
#   tests/mutations/run.sh --check                          every line of every list still changes its file; builds nothing
#
# The faults stand in MODULE.txt, the tests in the executable test_MODULE. First that is built and the named tests must be green; then a
# fault costs the compilation of what it touches, the links, and its tests, which may take as long as a hang needs to be told from work.
# Every file is put back, whatever happens, and all is built again at the end.
# Exit code 9 when a fault goes unnoticed or changes nothing, 1 when a test is red without any, 2 when there is no such list.
set -euo pipefail
shopt -s inherit_errexit
root=$(cd "$(dirname "$0")/../.." && pwd)
module=${1:-}
if [[ $module == --check ]]; then
  stale=0
  for list in "$root"/tests/mutations/*.txt; do
    name=$(basename "$list" .txt)
    while IFS='|' read -r file expression filter; do
      read -r file <<<"$file"
      [[ -n $file && $file != \#* ]] || continue
      path=$root/lib/mxtrain/$name/$file
      read -r expression <<<"$expression"
      changed=$(sed -e "$expression" "$path" 2>&1 | cmp -s - "$path" && echo no || echo yes)
      if [[ ! -f $path || -z $filter || $changed == no ]] || ! sed -n -e "$expression" /dev/null 2>/dev/null; then
        echo "$name.txt: $file: no file, no filter, or nothing that it changes: $expression"
        stale=1
      fi
    done <"$list"
  done
  exit $((stale * 9))
fi
build=${2:-$root/build/asan}
pattern=${3:-}
list=$root/tests/mutations/$module.txt
folder=$root/lib/mxtrain/$module
tests=test_$module
limit_s=300  # a fault that lets a test hang is noticed too
if [[ -z $module || ! -f $list ]]; then
  echo "run.sh: name a module with a list: $(cd "$root/tests/mutations" && echo *.txt | sed 's/\.txt//g')" >&2
  exit 2
fi
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
build_tests() { cmake --build "$build" --target "$tests" >/dev/null 2>&1; }
passes() { timeout -k 5 "$limit_s" "$build/bin/$tests" --test-case="$1"; } >/dev/null 2>&1  # with what the shell says of a crash
names_a_case() { [[ $("$build/bin/$tests" --test-case="$1" --count --no-colors) != *": 0" ]]; }

files=() expressions=() filters=()
while IFS= read -r line; do
  if [[ -z $(trim "$line") || $line == \#* || ! $line =~ $pattern ]]; then continue; fi
  IFS='|' read -r file expression filter <<<"$line"
  files+=("$(trim "$file")")
  expressions+=("$(trim "$expression")")
  filters+=("$(trim "$filter")")
done <"$list"
if ((${#files[@]} == 0)); then
  echo "run.sh: no line of $module.txt matches '$pattern'" >&2
  exit 2
fi

build_tests || { echo "run.sh: $build does not build $tests" >&2; exit 1; }
while IFS= read -r filter; do
  names_a_case "$filter" || { echo "run.sh: '$filter' names no case of $tests" >&2; exit 1; }
  passes "$filter" || { echo "run.sh: '$filter' is red without a fault" >&2; exit 1; }
done < <(printf '%s\n' "${filters[@]}" | sort -u)

missed=0
printf '%-45s %-50s %s\n' file test outcome
for i in "${!files[@]}"; do
  path=$folder/${files[i]}
  cp "$path" "$kept"
  broken=$path
  sed -i -e "${expressions[i]}" "$path"
  outcome=red
  if cmp -s "$path" "$kept"; then
    outcome="the expression changes nothing"
  elif ! build_tests; then  # the tests too: one may include the header that is broken
    outcome="does not compile"
  elif passes "${filters[i]}"; then
    outcome="NOT NOTICED"
  fi
  [[ $outcome == red ]] || missed=$((missed + 1))
  restore
  printf '%-45s %-50s %s\n' "${files[i]}" "${filters[i]}" "$outcome"
  [[ $outcome == red ]] || printf '    %s\n' "${expressions[i]}"
done
build_tests
echo "$((${#files[@]} - missed)) of ${#files[@]} faults turn their tests red"
if ((missed > 0)); then exit 9; fi
