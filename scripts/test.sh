#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Installs dependencies, builds and runs all tests.
#   scripts/test.sh                    the release build, all tests
#   scripts/test.sh --full             also unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, and those of
#                                      modules with their own threads under ThreadSanitizer; scripts/lint.sh; with nvcc also the build with
#                                      the CUDA backend for one architecture, whose tests are skipped without a GPU, and its package
#   scripts/test.sh --full --within N  skips, and names, what under a sanitizer would not end within N minutes on a slow machine
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

# Whether so many minutes are left, besides those that the release tests at the end take on a slow machine. What follows something that
# was skipped is skipped, too: it builds on that.
release_tests=30 skipped=0
fits() {
  [[ -z $within ]] && return
  [[ $skipped -eq 0 && $((SECONDS / 60 + $1 + release_tests)) -le $within ]] && return
  skipped=1
  return 1
}

# The tests under AddressSanitizer in three parts, each skipped if it would not fit: the modules below operators, those above, the rest.
below=(base device storage engine resource ndarray io)
above=(operator operators symbol executor autograd kvstore optimizer initializer metric train)
pattern() { echo "^test_($(IFS='|'; echo "$*"))(_mnist|_clothing)?\$"; }
asan_part() {  # name, minutes on a slow machine, "rest" or modules
  local name=$1 minutes=$2
  shift 2
  if ! fits "$minutes"; then
    stage "asan: skipped for lack of time: $name (scripts/nightly.sh full has it)"
  elif [[ $1 == rest ]]; then
    build asan doctests
    sanitized asan -L 'unit|integration' -E "$(pattern "${below[@]}" "${above[@]}" operators_teams)"
  else
    build asan "${@/#/test_}"
    sanitized asan -R "$(pattern "$@")"
  fi
}

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
  asan_part "engine, memory and data" 11 "${below[@]}"
  asan_part "operators, executor and training" 24 "${above[@]}"
  asan_part "files of other programs, and the program" 16 rest
  if fits 20; then
    # Only modules with their own threads. One thread per OpenMP team, since the runtime is not instrumented and its barriers look like races.
    threaded=(base device engine ndarray executor kvstore io train)
    build tsan "${threaded[@]/#/test_}"
    # Without oneDNN, and with slow memory accesses, three random nets take as long as ten in other builds. Cases that take minutes here
    # run in the other builds, and here at night.
    MXTRAIN_SKIP_LONG="${MXTRAIN_SKIP_LONG:-1}" MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-3}" OMP_THREAD_LIMIT=1 sanitized tsan -R "$(pattern "${threaded[@]}")"
  else
    stage "tsan: skipped for lack of time (scripts/nightly.sh full has it)"
  fi
fi
stage "release: tests"
ctest --test-dir build/release --output-on-failure -j "$jobs"
