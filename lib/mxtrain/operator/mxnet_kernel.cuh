// SPDX-License-Identifier: Apache-2.0
#pragma once
// mxnet_tensor.h for device code: tensors of `gpu`. Only .cu files include it. Needs CUDA's runtime
// and nothing of the CUDA backend, so a plug-in compiles it wherever nvcc is.
#include <cuda_runtime.h>

#include "mxtrain/operator/mxnet_tensor.h"

namespace mxtrain::mxnet {

// CUDA's handle of the stream of a running function.
inline cudaStream_t StreamOf(const mxtrain::Stream* stream) {
  return static_cast<cudaStream_t>(stream->native());
}

namespace detail {

inline constexpr int kBlockThreads = 256;
inline constexpr int64_t kMostBlocks = 4096;  // the loops cover the rest

template <typename F>
__global__ void __launch_bounds__(kBlockThreads) ForEachKernel(int64_t n, F f) {
  const int64_t stride = static_cast<int64_t>(gridDim.x) * blockDim.x;
  for (int64_t i = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x; i < n; i += stride)
    f(i);
}

}  // namespace detail

// On the stream. Throws kDevice if the launch fails; errors inside f appear where the work is
// waited for.
template <typename F>
void ForEach(gpu, Stream<gpu>* stream, int64_t n, const F& f) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  if (n <= 0) return;
  if (!stream) {
    Throw(ErrorKind::kBug,
          "a tensor of a GPU has no stream; pass ctx.get_stream<gpu>() to get or FlatTo2D");
  }
  const int64_t blocks = (n + detail::kBlockThreads - 1) / detail::kBlockThreads;
  detail::ForEachKernel<<<static_cast<unsigned>(std::min(blocks, detail::kMostBlocks)),
                          detail::kBlockThreads, 0, StreamOf(stream)>>>(n, f);
  if (const cudaError_t status = cudaGetLastError(); status != cudaSuccess) {
    Throw(ErrorKind::kDevice, "a loop over {} elements cannot be launched: {} ({})", n,
          cudaGetErrorString(status), cudaGetErrorName(status));
  }
}

}  // namespace mxtrain::mxnet
