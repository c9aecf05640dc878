// SPDX-License-Identifier: Apache-2.0
#pragma once
// out[i] = f(a[i], b[i], ...) on the CPU: the loop of all element-wise operators, over the stored
// elements (opaque layouts run as flat arrays), parallel, vectorized for the machine, honouring the
// request. An input may also be the output.
#include <type_traits>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/wrapping_int.h"

namespace mxtrain {

// The type in which elements of T are computed.
template <typename T>
using ComputeOf = std::conditional_t<std::is_same_v<T, double>, double,
                                     std::conditional_t<std::is_integral_v<T>, WrappingInt, float>>;

namespace detail {

template <bool kAdd, typename T, typename F, typename... In>
[[gnu::always_inline]] inline void ElementLoop(int64_t begin, int64_t end, T* out, const F& f,
                                               const In*... in) {
#pragma GCC ivdep
  for (int64_t i = begin; i < end; ++i) {
    const ComputeOf<T> value = f(static_cast<ComputeOf<In>>(in[i])...);
    out[i] = static_cast<T>(kAdd ? static_cast<ComputeOf<T>>(out[i]) + value : value);
  }
}
template <bool kAdd, typename T, typename F, typename... In>
MXTRAIN_SIMD void ElementLoopSimd(int64_t begin, int64_t end, T* out, F f, const In*... in) {
  ElementLoop<kAdd>(begin, end, out, f, in...);
}

template <typename T, typename F, typename... In>
void MapArrays(int64_t n, T* out, OpReqType req, const F& f, const In*... in) {
  SwitchReq(req, [&](auto accumulate) {
    ParallelFor(n, kParallelGrain, [&](int64_t begin, int64_t end) {
      if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bfloat16>) {
        ElementLoopSimd<accumulate()>(begin, end, out, f, in...);
      } else {
        ElementLoop<accumulate()>(begin, end, out, f, in...);
      }
    });
  });
}

}  // namespace detail

// All arrays hold elements of T and have the same layout and shape. `f` takes and returns
// ComputeOf<T> and is inlined: a small trivially copyable functor.
template <typename T, typename F, typename... Blobs>
void MapElements(const TBlob& out, OpReqType req, const F& f, const Blobs&... in) {
  detail::MapArrays(out.StoredSize(), out.dptr<T>(), req, f,
                    static_cast<const T*>(in.template dptr<T>())...);
}

// As above, for code written once for both devices (elementwise.cuh has the GPU version).
template <typename T, typename F, typename... Blobs>
void MapElements(const OnCpu&, const TBlob& out, OpReqType req, const F& f, const Blobs&... in) {
  MapElements<T>(out, req, f, in...);
}

inline const std::vector<DType> kFloatingTypes = {DType::kFloat32, DType::kFloat64, DType::kFloat16,
                                                  DType::kBfloat16};

}  // namespace mxtrain
