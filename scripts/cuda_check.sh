#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
# With nvcc: builds the CUDA backend for one architecture, runs its tests, which are skipped where they need a GPU and there is none, and
# makes its package. Without nvcc it says so and succeeds.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v nvcc >/dev/null && [[ ! -x /usr/local/cuda/bin/nvcc ]]; then
  echo "cuda_check.sh: skipped: nvcc not found"
  exit
fi
# Files without CUDA come from the compiler cache where the release build has just compiled them.
cmake --preset cuda-dev >build-cuda-dev.log 2>&1 || { cat build-cuda-dev.log; exit 1; }
rm -f build-cuda-dev.log
ninja -C build/cuda-dev -j "$(nproc)" --quiet mxtrain_program mxtrain_cuda_lib test_gpu test_gpu_operators test_cuda test_gpu_ranks
ctest --test-dir build/cuda-dev --output-on-failure -L gpu
scripts/package.sh --cuda --arch 90  # of what has just been built
