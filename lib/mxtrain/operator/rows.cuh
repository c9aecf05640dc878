// SPDX-License-Identifier: Apache-2.0
#pragma once
// rows.h for device code: warps process rows, blocks process long rows, single threads process
// columns.
#include <cstring>

#include "mxtrain/operator/kernel.cuh"
#include "mxtrain/operator/rows.h"

namespace mxtrain {
namespace detail {

inline constexpr int kWarpThreads = 32;
inline constexpr int kBlockWarps = cuda::kBlockThreads / kWarpThreads;
static_assert((kBlockWarps & (kBlockWarps - 1)) == 0 && kBlockWarps <= kWarpThreads,
              "one warp folds the results of the warps of a block");
inline constexpr int64_t kLongestOfWarp = 1024;  // elements of a row that one warp processes

// The value of the warp lane whose index differs in the bits of `mask`.
template <typename V>
__device__ inline V ShuffleXor(V value, int mask) {
  static_assert(std::is_trivially_copyable_v<V> && sizeof(V) % sizeof(uint32_t) == 0);
  uint32_t words[sizeof(V) / sizeof(uint32_t)];
  memcpy(words, &value, sizeof(V));
#pragma unroll
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, mask);
  memcpy(&value, words, sizeof(V));
  return value;
}

// Over groups of `lanes` warp lanes, a power of two; every lane gets the result, with the same
// bits.
template <int kLanes, typename V, typename Op>
__device__ inline V FoldLanes(V value, Op op) {
#pragma unroll
  for (int mask = kLanes / 2; mask > 0; mask /= 2) value = op(value, ShuffleXor(value, mask));
  return value;
}

template <typename V, typename Op>
__device__ inline V FoldBlock(V value, Op op) {
  __shared__ __align__(16) unsigned char room[kBlockWarps * sizeof(V)];
  value = FoldLanes<kWarpThreads>(value, op);
  const int lane = threadIdx.x % kWarpThreads, warp = threadIdx.x / kWarpThreads;
  if (lane == 0) memcpy(room + warp * sizeof(V), &value, sizeof(V));
  __syncthreads();
  memcpy(&value, room + lane % kBlockWarps * sizeof(V), sizeof(V));
  __syncthreads();  // before the next fold writes there
  return FoldLanes<kBlockWarps>(value, op);
}

}  // namespace detail

// Marked for the host too because their callers are; they run only on the device.
struct WarpTeam {
  MXTRAIN_HD int rank() const {
    MXTRAIN_ON_DEVICE(return threadIdx.x % detail::kWarpThreads;)
    return 0;
  }
  MXTRAIN_HD static constexpr int size() { return detail::kWarpThreads; }
  template <typename V, typename Op>
  MXTRAIN_HD V Fold(V value, [[maybe_unused]] Op op) const {
    MXTRAIN_ON_DEVICE(return detail::FoldLanes<detail::kWarpThreads>(value, op);)
    return value;
  }
};
struct BlockTeam {
  MXTRAIN_HD int rank() const {
    MXTRAIN_ON_DEVICE(return threadIdx.x;)
    return 0;
  }
  MXTRAIN_HD static constexpr int size() { return cuda::kBlockThreads; }
  template <typename V, typename Op>
  MXTRAIN_HD V Fold(V value, [[maybe_unused]] Op op) const {
    MXTRAIN_ON_DEVICE(return detail::FoldBlock(value, op);)
    return value;
  }
};

namespace detail {

template <typename F>
__global__ void __launch_bounds__(cuda::kBlockThreads) WarpRowsKernel(int64_t rows, F f) {
  for (int64_t row = cuda::FirstIndex() / kWarpThreads; row < rows;
       row += cuda::IndexStride() / kWarpThreads)
    f(WarpTeam{}, row);
}
template <typename F>
__global__ void __launch_bounds__(cuda::kBlockThreads) BlockRowsKernel(int64_t rows, F f) {
  for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) f(BlockTeam{}, row);
}

template <typename F>
struct SoloRow {
  F f;
  MXTRAIN_HD void operator()(int64_t row) const { f(SoloTeam{}, row); }
};

}  // namespace detail

template <typename F>
void ForRows(const OnGpu& device, int64_t rows, int64_t length, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  if (rows == 0) return;
  cudaStream_t stream = StreamOf(device.ctx).get();
  if (length <= detail::kLongestOfWarp) {
    detail::WarpRowsKernel<<<cuda::BlocksFor(rows, detail::kBlockWarps), cuda::kBlockThreads, 0,
                             stream>>>(rows, f);
  } else {
    detail::BlockRowsKernel<<<cuda::BlocksFor(rows, 1), cuda::kBlockThreads, 0, stream>>>(rows, f);
  }
  cuda::CheckLaunch("a loop over rows");
}
template <typename F>
void ForColumns(const OnGpu& device, int64_t columns, int64_t, const F& f) {
  Launch(device, columns, detail::SoloRow<F>{f});
}

}  // namespace mxtrain
