// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops of device code. A functor is trivially copyable and small (it is passed as a kernel
// argument), and its call operator is MXTRAIN_HD.
#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/math.h"
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain::cuda {

inline constexpr int kBlockThreads = 256;
// Enough blocks to fill every device several times; the loops cover the rest.
inline constexpr int64_t kMaxBlocks = 132 * 32;

inline unsigned BlocksFor(int64_t n, int64_t per_block = kBlockThreads) {
  return static_cast<unsigned>(std::min(CeilDivide(n, per_block), kMaxBlocks));
}

// Throws the error of the preceding launch. Errors inside the kernel appear where its work is
// waited for.
inline void CheckLaunch(const char* kernel) {
  Check(cudaGetLastError(), kernel);
}

// First index of the calling thread and the distance to its next one, for a loop over more indices
// than threads.
__device__ inline int64_t FirstIndex() {
  return static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
}
__device__ inline int64_t IndexStride() {
  return static_cast<int64_t>(gridDim.x) * blockDim.x;
}

template <typename F>
__global__ void __launch_bounds__(kBlockThreads) LoopKernel(int64_t n, F f) {
  for (int64_t i = FirstIndex(); i < n; i += IndexStride()) f(i);
}

// f(i) for every i in [0, n), on the stream.
template <typename F>
void Loop(CudaStream& stream, int64_t n, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  if (n <= 0) return;
  LoopKernel<<<BlocksFor(n), kBlockThreads, 0, stream.get()>>>(n, f);
  CheckLaunch("a loop over indices");
}

}  // namespace mxtrain::cuda
