#!/usr/bin/env bash
# Breaks the operators, one fault at a time, and demands that the named test turns red.
#
#   tests/mutations/run.sh [BUILD_DIR] [PATTERN]     BUILD_DIR: a configured build (default build/dev); PATTERN: only files that match
#
# The faults stand in operators.txt. Every file is put back, whatever happens. Exit code 9 when a fault goes unnoticed.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/dev}
pattern=${2:-}
list=$root/tests/mutations/operators.txt
kept=$(mktemp)
broken=""

restore() {
  if [[ -n $broken ]]; then cp "$kept" "$broken"; fi
  broken=""
}
trap 'restore; rm -f "$kept"' EXIT

trim() { sed -e 's/^[[:space:]]*//' -e 's/[[:space:]]*$//' <<<"$1"; }

missed=0
total=0
printf '%-45s %-50s %s\n' file test outcome
while IFS='|' read -r file expression filter; do
  file=$(trim "$file")
  if [[ -z $file || $file == \#* || ! $file =~ $pattern ]]; then continue; fi
  expression=$(trim "$expression")
  filter=$(trim "$filter")
  total=$((total + 1))
  path=$root/lib/mxtrain/operators/$file
  cp "$path" "$kept"
  broken=$path
  sed -i -e "$expression" "$path"
  if cmp -s "$path" "$kept"; then
    outcome="the expression changes nothing"
    missed=$((missed + 1))
  elif ! cmake --build "$build" --target test_operators >/dev/null 2>&1; then
    outcome="does not compile"
    missed=$((missed + 1))
  elif "$build/bin/test_operators" --test-case="$filter" >/dev/null 2>&1; then
    outcome="NOT NOTICED"
    missed=$((missed + 1))
  else
    outcome="red"
  fi
  restore
  printf '%-45s %-50s %s\n' "$file" "$filter" "$outcome"
done <"$list"
echo "$((total - missed)) of $total faults turn their test red"
if ((missed > 0)); then exit 9; fi
