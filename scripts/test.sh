#!/usr/bin/env bash
# Installs what is missing, builds and runs every test.
#   scripts/test.sh          the release build
#   scripts/test.sh --full   also AddressSanitizer + UndefinedBehaviorSanitizer and ThreadSanitizer builds of the engine's library, with their tests
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

# preset, then targets (none: all)
build() {
  local preset=$1
  shift
  echo "== $preset"
  cmake --preset "$preset" >"build-$preset.log" 2>&1 || { cat "build-$preset.log"; exit 1; }
  rm -f "build-$preset.log"
  ninja -C "build/$preset" -j "$jobs" --quiet "$@"
}

if [[ $full -eq 1 ]]; then
  export MXTRAIN_ENGINE_PROGRAMS="${MXTRAIN_ENGINE_PROGRAMS:-60}"
  build asan test_base test_device test_engine
  # A test asks for more memory than there is.
  ASAN_OPTIONS=allocator_may_return_null=1 ctest --test-dir build/asan --output-on-failure -R '^test_(base|device|engine)$'
  # Not test_device: the OpenMP runtime is not instrumented, and its barriers look like races.
  build tsan test_base test_engine
  # libstdc++ counts references of exceptions in code that is not instrumented.
  TSAN_OPTIONS=ignore_noninstrumented_modules=1 ctest --test-dir build/tsan --output-on-failure -R '^test_(base|engine)$'
  unset MXTRAIN_ENGINE_PROGRAMS
fi
build release
ctest --test-dir build/release --output-on-failure
