// SPDX-License-Identifier: Apache-2.0
#pragma once
// elementwise.h for device code: out[i] = f(a[i], b[i], ...) over the stored elements, 16 bytes at
// a time, honouring the request. `f` is MXTRAIN_HD, takes and returns ComputeOf<T>, and an input
// may also be the output.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/kernel.cuh"

namespace mxtrain {
namespace detail {

template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) Pack {
  T v[kWidth];
};

template <typename T, typename F, typename... In>
__device__ inline T ElementOf(bool add, T before, const F& f, In... in) {
  const ComputeOf<T> value = f(static_cast<ComputeOf<In>>(in)...);
  return static_cast<T>(add ? static_cast<ComputeOf<T>>(before) + value : value);
}

// `packs` packs first, then the remaining elements. Per-call values are arguments: one kernel per
// functor and type is enough.
template <int kWidth, typename T, typename F, typename... In>
__global__ void __launch_bounds__(cuda::kBlockThreads)
    ElementKernel(int64_t n, int64_t packs, bool add, T* out, F f, const In*... in) {
  for (int64_t p = cuda::FirstIndex(); p < packs; p += cuda::IndexStride()) {
    const auto elements = [&](const Pack<In, kWidth>&... a) {
      Pack<T, kWidth> result{};
      if (add) result = reinterpret_cast<const Pack<T, kWidth>*>(out)[p];
#pragma unroll
      for (int k = 0; k < kWidth; ++k) result.v[k] = ElementOf(add, result.v[k], f, a.v[k]...);
      reinterpret_cast<Pack<T, kWidth>*>(out)[p] = result;
    };
    elements(reinterpret_cast<const Pack<In, kWidth>*>(in)[p]...);
  }
  for (int64_t i = packs * kWidth + cuda::FirstIndex(); i < n; i += cuda::IndexStride()) {
    out[i] = ElementOf(add, add ? out[i] : T(), f, in[i]...);
  }
}

inline bool AlignedForPacks(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}

}  // namespace detail

template <typename T, typename F, typename... Blobs>
void MapElements(const OnGpu& device, const TBlob& out, OpReqType req, const F& f,
                 const Blobs&... in) {
  static_assert(std::is_trivially_copyable_v<F>, "functors are copied to the device bytewise");
  constexpr int kWidth = 16 / sizeof(T);
  const int64_t n = out.StoredSize();
  if (n == 0 || req == OpReqType::kNullOp) return;
  const bool aligned =
      (detail::AlignedForPacks(out.data) && ... && detail::AlignedForPacks(in.data));
  const int64_t packs = aligned ? n / kWidth : 0;
  detail::ElementKernel<kWidth>
      <<<cuda::BlocksFor(aligned ? packs + kWidth : n), cuda::kBlockThreads, 0,
         StreamOf(device.ctx).get()>>>(n, packs, req == OpReqType::kAddTo, out.dptr<T>(), f,
                                       static_cast<const T*>(in.template dptr<T>())...);
  cuda::CheckLaunch("an element-wise loop");
}

}  // namespace mxtrain
