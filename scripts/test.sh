#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs dependencies, builds and runs all tests.
#   scripts/test.sh                    the release build, all tests
#   scripts/test.sh --full             also scripts/lint.sh; with nvcc the build with the CUDA backend for one architecture, whose tests are
#                                      skipped without a GPU, and its package; and all parts of scripts/sanitize.sh
#   scripts/test.sh --full --within N  stops sanitize.sh after N minutes since its own start, and names the parts that did not end
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
  ninja -C "build/$preset" -j "$jobs" --quiet "$@"
}

# A part of sanitize.sh, in the time that is left; one that does not end in it is no failure, and neither are those after it.
unfinished=()
sanitized() {
  local left code=0
  if [[ -z $within ]]; then
    stage "sanitizers: $1"
    scripts/sanitize.sh "$1"
    return
  fi
  left=$((within * 60 - SECONDS))
  if [[ ${#unfinished[@]} -gt 0 || $left -le 0 ]]; then
    unfinished+=("$1")
    return
  fi
  stage "sanitizers: $1"
  timeout -k 10 "$left" scripts/sanitize.sh "$1" || code=$?
  if [[ $code -eq 124 || $code -eq 137 ]]; then unfinished+=("$1"); else return "$code"; fi
}

build release
stage "release: tests"
ctest --test-dir build/release --output-on-failure -j "$jobs" | tee build/tests.log
[[ $full -eq 1 ]] || exit 0

stage "lint"
scripts/lint.sh
if command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; then
  # Files without CUDA come from the compiler cache: release has just compiled them.
  build cuda-dev mxtrain_program mxtrain_cuda_lib test_gpu test_gpu_operators test_cuda test_gpu_ranks
  stage "cuda-dev: tests and package"
  ctest --test-dir build/cuda-dev --output-on-failure -L gpu
  scripts/package.sh --cuda --arch 90  # of what has just been built
else
  stage "cuda-dev: skipped: nvcc not found"
fi
for part in below above rest threads; do sanitized "$part"; done
stage "end"
[[ ${#unfinished[@]} -eq 0 ]] || echo "parts of scripts/sanitize.sh that did not end in $within minutes: ${unfinished[*]} (scripts/nightly.sh full runs them)"
echo "the release build:"
grep -E 'tests passed|tests failed|Total Test time' build/tests.log
