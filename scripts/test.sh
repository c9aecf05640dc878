#!/usr/bin/env bash
# Installs what is missing, builds and runs every test.
#   scripts/test.sh          the release build
#   scripts/test.sh --full   also AddressSanitizer + UndefinedBehaviorSanitizer and ThreadSanitizer builds of base, device and engine, with their tests
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
  engine_tests=(test_base test_device test_engine)
  for preset in asan tsan; do
    build "$preset" "${engine_tests[@]}"
    # The OpenMP runtime is not instrumented: its barriers look like races to ThreadSanitizer.
    TSAN_OPTIONS="suppressions=$PWD/tests/support/tsan.supp:ignore_noninstrumented_modules=1" \
      MXTRAIN_ENGINE_PROGRAMS="${MXTRAIN_ENGINE_PROGRAMS:-60}" \
      ctest --test-dir "build/$preset" --output-on-failure -R '^test_(base|device|engine)$'
  done
fi
build release
ctest --test-dir build/release --output-on-failure
