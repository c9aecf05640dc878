#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs dependencies, builds and runs all tests.
#   scripts/test.sh                    the release build, all tests
#   scripts/test.sh --full             also scripts/lint.sh, scripts/cuda_check.sh and all parts of scripts/sanitize.sh
#   scripts/test.sh --full --within N  stops what follows lint.sh after N minutes since its own start, and names what did not end
# Tests with real data look for it in MXTRAIN_DATA_DIR, else in data/ and ../shared/data; without it ctest shows them as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
full=0 within=
while [[ $# -gt 0 ]]; do
  case $1 in
    --full) full=1 ;;
    --within)
      within=${2:-}
      [[ $within =~ ^[0-9]+$ ]] || { echo "test.sh: --within takes a number of minutes" >&2; exit 2; }
      shift ;;
    *) echo "test.sh: unknown argument '$1'; it takes --full and --within N" >&2; exit 2 ;;
  esac
  shift
done

if [[ $full -eq 1 ]]; then scripts/install_deps.sh --development; else scripts/install_deps.sh; fi
jobs=$(nproc)

stage() { echo "== $* (after $((SECONDS / 60)):$(printf %02d $((SECONDS % 60))))"; }

# preset, then targets (none: all)
build() {
  local preset=$1
  shift
  stage "$preset: build"
  cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
  rm -f "build-$preset.log"
  NINJA_STATUS="[%f of %t, %es] " ninja -C "build/$preset" -j "$jobs" "$@"
}

# limited NAME COMMAND...: in the time that is left. What does not end in it is no failure, and what follows it is not begun.
unfinished=()
limited() {
  local name=$1 left code=0
  shift
  if [[ -z $within ]]; then
    stage "$name"
    "$@"
    return
  fi
  left=$((within * 60 - SECONDS))
  if [[ ${#unfinished[@]} -gt 0 || $left -le 0 ]]; then
    unfinished+=("$name")
    return
  fi
  stage "$name"
  timeout -k 10 "$left" "$@" || code=$?
  if [[ $code -eq 124 || $code -eq 137 ]]; then unfinished+=("$name"); else return "$code"; fi
}

build release
stage "release: tests"
ctest --test-dir build/release --output-on-failure -j "$jobs" | tee build/tests.log
[[ $full -eq 1 ]] || exit 0

stage "lint"
scripts/lint.sh
limited cuda scripts/cuda_check.sh
for part in below above rest threads; do limited "sanitizers: $part" scripts/sanitize.sh "$part"; done
stage "end"
for name in "${unfinished[@]}"; do echo "did not end within $within minutes: $name"; done
echo "the release build:"
grep -E 'tests passed|tests failed|Total Test time' build/tests.log
