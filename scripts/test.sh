#!/usr/bin/env bash
# Installs what is missing, builds and runs every test.
#   scripts/test.sh          the release build
#   scripts/test.sh --full   also AddressSanitizer + UndefinedBehaviorSanitizer and ThreadSanitizer builds of the library, with the tests that
#                            they serve
# Data sets for tests that want real ones are found in MXTRAIN_DATA_DIR, else in ../shared/data; without them those tests say that they skip.
set -euo pipefail
cd "$(dirname "$0")/.."
full=0
for argument in "$@"; do
  case $argument in
    --full) full=1 ;;
    *) echo "test.sh: unknown argument '$argument'; it takes --full" >&2; exit 2 ;;
  esac
done

scripts/install_deps.sh
jobs=$(nproc)
if [[ -z ${MXTRAIN_DATA_DIR:-} && -d ../shared/data ]]; then
  export MXTRAIN_DATA_DIR=$PWD/../shared/data
fi

# preset, then ctest arguments
run() {
  local preset=$1
  shift
  echo "== $preset"
  cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
  rm -f "build-$preset.log"
  cmake --build --preset "$preset" -j "$jobs" -- --quiet
  ctest --test-dir "build/$preset" --output-on-failure "$@"
}

if [[ $full -eq 1 ]]; then
  # Suppressed: the OpenMP runtime is not instrumented, so that its barriers look like races to ThreadSanitizer.
  export TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp:ignore_noninstrumented_modules=1"
  export ASAN_OPTIONS=detect_leaks=1
  export LSAN_OPTIONS=suppressions=$PWD/tests/support/lsan.supp
  MXTRAIN_ENGINE_PROGRAMS=${MXTRAIN_ENGINE_PROGRAMS:-100} run asan -L unit
  MXTRAIN_ENGINE_PROGRAMS=${MXTRAIN_ENGINE_PROGRAMS:-100} run tsan -R '^test_(engine|ndarray|executor|io)$'
  unset TSAN_OPTIONS ASAN_OPTIONS LSAN_OPTIONS
fi
run release
