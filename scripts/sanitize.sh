#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# Builds and runs tests under sanitizers, part after part; stops at the first test that fails.
#   scripts/sanitize.sh PART...    below    modules below the operators (engine, memory, data, text) under AddressSanitizer and
#                                           UndefinedBehaviorSanitizer
#                                  above    the modules from the operators to training, under both
#                                  rest     other unit tests (files of other programs, the program) and the integration tests, under both
#                                  threads  modules with threads of their own under ThreadSanitizer
# Of the cases a sample, unless the variables below say otherwise.
set -euo pipefail
cd "$(dirname "$0")/.."
jobs=$(nproc)

# Of the requests of an operator's case one in 16 and of its types one in eight, 60 of 1000 programs of the engine, 8 of the executor's random
# nets, every fifth configuration, and no case of the suite "long". The release build runs every one of them without a sanitizer, and scripts/nightly.sh with it. Kernels on
# teams are the same loops as the CPU's: under a sanitizer they run in `nightly.sh teams`.
export MXTRAIN_CASE_FLOAT64="${MXTRAIN_CASE_FLOAT64:-0}" MXTRAIN_CASE_TRIALS="${MXTRAIN_CASE_TRIALS:-16}"
export MXTRAIN_CASE_TYPES="${MXTRAIN_CASE_TYPES:-8}" MXTRAIN_CONFIGS="${MXTRAIN_CONFIGS:-5}"
export MXTRAIN_ENGINE_PROGRAMS="${MXTRAIN_ENGINE_PROGRAMS:-60}" MXTRAIN_SKIP_LONG="${MXTRAIN_SKIP_LONG:-1}"
# A test requests more memory than exists; under both sanitizers that must return a null pointer.
export ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1
export OMP_WAIT_POLICY=passive

# preset, then targets
build() {
  local preset=$1
  shift
  cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
  rm -f "build-$preset.log"
  ninja -C "build/$preset" -j "$jobs" --quiet "$@"
}
# preset, then how ctest selects
tests() {
  local preset=$1
  shift
  ctest --test-dir "build/$preset" --output-on-failure --stop-on-failure -j "$jobs" "$@"
}
pattern() { echo "^test_($(IFS='|'; echo "$*"))(_mnist|_clothing)?\$"; }

below=(base text device storage engine resource ndarray io)
above=(operator operators symbol executor autograd kvstore optimizer initializer metric train)
threaded=(base device engine ndarray executor kvstore io train)

run_part() {
  case $1 in
    below)
      build asan "${below[@]/#/test_}"
      tests asan -R "$(pattern "${below[@]}")" ;;
    above)
      export MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-8}"
      build asan "${above[@]/#/test_}"
      tests asan -R "$(pattern "${above[@]}")" ;;
    rest)
      build asan doctests
      tests asan -L 'unit|integration' -E "$(pattern "${below[@]}" "${above[@]}" operators_teams)" ;;
    threads)
      # One thread per OpenMP team, since the runtime is not instrumented and its barriers look like races. Without oneDNN, and with slow
      # memory accesses, three random nets take as long as ten in other builds.
      export MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-3}" OMP_THREAD_LIMIT=1
      build tsan "${threaded[@]/#/test_}"
      tests tsan -R "$(pattern "${threaded[@]}")" ;;
    *) echo "sanitize.sh: unknown part '$1'; it takes: below above rest threads" >&2; exit 2 ;;
  esac
}

[[ $# -gt 0 ]] || { echo "sanitize.sh: which part? It takes: below above rest threads" >&2; exit 2; }
for part in "$@"; do
  (run_part "$part")
done
