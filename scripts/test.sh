#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs dependencies, builds and runs all tests.
#   scripts/test.sh          the release build
#   scripts/test.sh --full   before that, unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, and those of
#                            modules with their own threads under ThreadSanitizer; scripts/lint.sh; with nvcc also the build with the
#                            CUDA backend for one architecture, whose tests are skipped without a GPU, and its package
# Tests with real data look for it in MXTRAIN_DATA_DIR, else in data/ and ../shared/data; without it ctest shows them as skipped.
set -euo pipefail
cd "$(dirname "$0")/.."
full=0
for argument in "$@"; do
  case $argument in
    --full) full=1 ;;
    *) echo "test.sh: unknown argument '$argument'; it takes --full" >&2; exit 2 ;;
  esac
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

# A sample of what scripts/nightly.sh runs: of the requests of an operator's case one in 16 and of its types one in eight, 60 of 1000 programs
# of the engine, 8 of the executor's random nets, every fifth configuration. The release build below runs every one of them without a
# sanitizer. Kernels on teams are the same loops as the CPU's: under a sanitizer they run in `nightly.sh teams`.
# A test requests more memory than exists; under both sanitizers that must return a null pointer.
sanitized() {
  local preset=$1
  shift
  stage "$preset: tests"
  ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1 \
    OMP_WAIT_POLICY=passive MXTRAIN_CASE_FLOAT64="${MXTRAIN_CASE_FLOAT64:-0}" MXTRAIN_CASE_TRIALS="${MXTRAIN_CASE_TRIALS:-16}" \
    MXTRAIN_CASE_TYPES="${MXTRAIN_CASE_TYPES:-8}" MXTRAIN_CONFIGS="${MXTRAIN_CONFIGS:-5}" \
    MXTRAIN_ENGINE_PROGRAMS="${MXTRAIN_ENGINE_PROGRAMS:-60}" MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-8}" \
    ctest --test-dir "build/$preset" --output-on-failure -j "$jobs" "$@"
}

if [[ $full -eq 1 ]]; then
  build asan doctests
  sanitized asan -L 'unit|integration' -E '^test_operators_teams$'
  # Only modules with their own threads. One thread per OpenMP team, since the runtime is not instrumented and its barriers look like races.
  threaded=(base device engine ndarray executor kvstore io train)
  build tsan "${threaded[@]/#/test_}"
  # Without oneDNN, and with slow memory accesses, three random nets take as long as ten in other builds. Cases that take minutes here
  # run in the other builds, and here at night.
  MXTRAIN_SKIP_LONG="${MXTRAIN_SKIP_LONG:-1}" MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-3}" OMP_THREAD_LIMIT=1 sanitized tsan -R "^test_($(IFS='|'; echo "${threaded[*]}"))(_mnist|_clothing)?\$"
fi
build release
if [[ $full -eq 1 ]]; then
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
fi
stage "release: tests"
ctest --test-dir build/release --output-on-failure -j "$jobs"
