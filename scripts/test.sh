#!/usr/bin/env bash
# Installs what is missing, builds and runs every test.
#   scripts/test.sh          the release build
#   scripts/test.sh --full   before that, unit and integration tests under AddressSanitizer + UndefinedBehaviorSanitizer, and those of every
#                            module with threads of its own under ThreadSanitizer; also, where nvcc is, the build with the GPU half for one
#                            architecture, whose tests show as skipped without a GPU, and its package
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

# A test asks for more memory than there is; under either sanitizer that must come back as a null pointer.
sanitized() {
  local preset=$1
  shift
  ASAN_OPTIONS=allocator_may_return_null=1 TSAN_OPTIONS=allocator_may_return_null=1:ignore_noninstrumented_modules=1 \
    OMP_WAIT_POLICY=passive MXTRAIN_ENGINE_PROGRAMS="${MXTRAIN_ENGINE_PROGRAMS:-60}" MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-20}" \
    ctest --test-dir "build/$preset" --output-on-failure -j "$jobs" "$@"
}

if [[ $full -eq 1 ]]; then
  build asan doctests
  sanitized asan -L 'unit|integration'
  # Only what has threads of its own. One thread per OpenMP team, whose runtime is not instrumented: its barriers look like races.
  threaded=(base engine ndarray executor kvstore io train)
  build tsan "${threaded[@]/#/test_}"
  # Without oneDNN, and at this price of an access to memory, five random nets take as long as twenty elsewhere.
  MXTRAIN_RANDOM_NETS="${MXTRAIN_RANDOM_NETS:-5}" OMP_THREAD_LIMIT=1 sanitized tsan -R "^test_($(IFS='|'; echo "${threaded[*]}"))\$"
fi
build release
if [[ $full -eq 1 ]]; then
  if command -v nvcc >/dev/null || [[ -x /usr/local/cuda/bin/nvcc ]]; then
    # What is not of CUDA comes from the compiler cache: release has just compiled it.
    build cuda-dev mxtrain_program mxtrain_cuda_lib test_gpu test_gpu_operators test_cuda
    ctest --test-dir build/cuda-dev --output-on-failure -L gpu
    scripts/package.sh --cuda --arch 90  # of what has just been built
  else
    echo "== cuda-dev: skipped, since there is no nvcc"
  fi
fi
ctest --test-dir build/release --output-on-failure
