#pragma once
// elementwise.h for device code: out[i] = f(a[i], b[i], ...) over the stored elements, 16 bytes at a time, honouring the request. `f` is
// MXTRAIN_HD, takes and gives ComputeOf<T>, and may be called on an array that is also the output.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/kernel.cuh"

namespace mxtrain {
namespace detail {

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T v[kWidth];
};

template <bool kAdd, typename T, typename F, typename... In>
__device__ inline T ElementOf(T before, const F& f, In... in) {
  const ComputeOf<T> value = f(static_cast<ComputeOf<In>>(in)...);
  return static_cast<T>(kAdd ? static_cast<ComputeOf<T>>(before) + value : value);
}

// Packs first, then the elements that fill none.
template <bool kAdd, int kWidth, typename T, typename F, typename... In>
__global__ void __launch_bounds__(cuda::kBlockThreads) ElementKernel(int64_t n, T* out, F f, const In*... in) {
  const int64_t packs = n / kWidth;
  for (int64_t p = cuda::FirstIndex(); p < packs; p += cuda::IndexStride()) {
    const auto elements = [&](const Pack<In, kWidth>&... a) {
      Pack<T, kWidth> result;
      if constexpr (kAdd) result = reinterpret_cast<const Pack<T, kWidth>*>(out)[p];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) result.v[k] = ElementOf<kAdd>(result.v[k], f, a.v[k]...);
      reinterpret_cast<Pack<T, kWidth>*>(out)[p] = result;
    };
    elements(reinterpret_cast<const Pack<In, kWidth>*>(in)[p]...);
  }
  for (int64_t i = packs * kWidth + cuda::FirstIndex(); i < n; i += cuda::IndexStride()) {
    out[i] = ElementOf<kAdd>(out[i], f, in[i]...);
  }
}

inline bool AlignedForPacks(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

}  // namespace detail

template <typename T, typename F, typename... Blobs>
void MapElements(const OnGpu& device, const TBlob& out, OpReqType req, const F& f, const Blobs&... in) {
  static_assert(std::is_trivially_copyable_v<F>, "a functor travels to the device byte by byte");
  constexpr int kWidth = 16 / sizeof(T);
  const int64_t n = out.StoredSize();
  if (n == 0) return;
  cudaStream_t stream = StreamOf(device.ctx).get();
  const bool packs = (detail::AlignedForPacks(out.data) && ... && detail::AlignedForPacks(in.data));
  SwitchReq(req, [&](auto accumulate) {
    constexpr bool kAdd = decltype(accumulate)::value;
    if (packs) {
      detail::ElementKernel<kAdd, kWidth><<<cuda::BlocksFor(n, cuda::kBlockThreads * kWidth), cuda::kBlockThreads, 0, stream>>>(
          n, out.dptr<T>(), f, static_cast<const T*>(in.template dptr<T>())...);
    } else {
      detail::ElementKernel<kAdd, 1>
          <<<cuda::BlocksFor(n), cuda::kBlockThreads, 0, stream>>>(n, out.dptr<T>(), f, static_cast<const T*>(in.template dptr<T>())...);
    }
    cuda::CheckLaunch("an element-wise loop");
  });
}

}  // namespace mxtrain
