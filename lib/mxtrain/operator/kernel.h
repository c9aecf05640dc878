// SPDX-License-Identifier: Apache-2.0
#pragma once
// Tools for writing kernels: type dispatch, assignment that honours the request, launch of a
// functor. kernel.cuh has the same for device code.
#include <cstdint>
#include <type_traits>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/operator.h"

namespace mxtrain {

// A type as a value: f(TypeTag<float>{}).
template <typename T>
struct TypeTag {
  using type = T;
};

// Calls f with the tag of a floating type; other types throw kConfig naming `who`.
template <typename F>
void SwitchFloating(DType type, const char* who, F&& f) {
  switch (type) {
    case DType::kFloat32:
      return f(TypeTag<float>{});
    case DType::kFloat64:
      return f(TypeTag<double>{});
    case DType::kFloat16:
      return f(TypeTag<float16>{});
    case DType::kBfloat16:
      return f(TypeTag<bfloat16>{});
    default:
      Throw(ErrorKind::kConfig, "{} takes float32, float64, float16 or bfloat16, not {}", who,
            NameOf(type));
  }
}
// As above for every type.
template <typename F>
void SwitchType(DType type, const char* who, F&& f) {
  switch (type) {
    case DType::kUint8:
      return f(TypeTag<uint8_t>{});
    case DType::kInt32:
      return f(TypeTag<int32_t>{});
    case DType::kInt64:
      return f(TypeTag<int64_t>{});
    default:
      return SwitchFloating(type, who, f);
  }
}

// The type in which sums over T are accumulated.
template <typename T>
using AccumulatorOf = std::conditional_t<std::is_same_v<T, double>, double,
                                         std::conditional_t<std::is_integral_v<T>, int64_t, float>>;

// a + b; integers wrap around.
template <typename A, typename B>
MXTRAIN_HD inline auto Plus(A a, B b) {
  if constexpr (std::is_integral_v<A> && std::is_integral_v<B>)
    return static_cast<int64_t>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  else
    return a + b;
}

// The value as an element of an array. 16-bit floats are made from float. What an integer type does
// not hold becomes what the processor makes of it, as in MXNet; a sanitizer does not mind that
// here.
template <typename T, typename V>
MXTRAIN_CLANG_ATTRIBUTE(no_sanitize("float-cast-overflow"))
MXTRAIN_HD inline T ElementOf(V value) {
  if constexpr (sizeof(T) == 2 && std::is_same_v<V, double>)
    return static_cast<T>(static_cast<float>(value));
  else
    return static_cast<T>(value);
}

// out[i] = value or out[i] += value. Not called for kNullOp.
template <typename T, typename V>
MXTRAIN_HD inline void Assign(OpReqType req, T* out, int64_t i, V value) {
  out[i] = req == OpReqType::kAddTo ? ElementOf<T>(Plus(static_cast<V>(out[i]), value))
                                    : ElementOf<T>(value);
}

// Calls f(std::bool_constant<accumulate>{}), which moves the choice out of the loop; does nothing
// for kNullOp.
template <typename F>
void SwitchReq(OpReqType req, F&& f) {
  if (req == OpReqType::kNullOp) return;
  if (req == OpReqType::kAddTo) {
    f(std::true_type{});
  } else {
    f(std::false_type{});
  }
}

// Elements below which a second thread does not pay.
inline constexpr int64_t kParallelGrain = 16384;

// The device of a kernel as a type, so that one source serves both devices: a template over the
// device instantiates OnCpu{ctx} in a .cc and OnGpu{ctx} (operator/kernel.cuh) in a .cu.
struct OnCpu {
  static constexpr DeviceType kType = DeviceType::kCPU;
  // Name of kernels written once for both devices.
  static constexpr const char* kKernelName = "ref";
  RunContext ctx;
};

// f(i) for every i in [0, n).
template <typename F>
void Launch(const OnCpu&, int64_t n, F f) {
  ParallelFor(n, kParallelGrain, [&f](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) f(i);
  });
}
template <typename F>
void Launch(const RunContext& ctx, int64_t n, F f) {
  Launch(OnCpu{ctx}, n, f);
}

// A functor for MapOn: element i of an array, as a V.
template <typename V, typename T>
struct ElementAt {
  const T* data;
  MXTRAIN_HD V operator()(int64_t i) const { return static_cast<V>(data[i]); }
};

namespace detail {

template <typename T, bool kAdd, typename F>
struct MapBody {
  T* data;
  F f;
  MXTRAIN_HD void operator()(int64_t i) const {
    if constexpr (kAdd) {
      data[i] = ElementOf<T>(Plus(data[i], f(i)));
    } else {
      data[i] = ElementOf<T>(f(i));
    }
  }
};

}  // namespace detail

// out[i] = f(i) honouring the request, over the stored elements of `out`. Device: OnCpu or OnGpu;
// for the latter f is a functor marked MXTRAIN_HD.
template <typename T, typename Device, typename F>
void MapOn(const Device& device, const TBlob& out, OpReqType req, F f) {
  SwitchReq(req, [&](auto accumulate) {
    Launch(device, out.StoredSize(),
           detail::MapBody<T, decltype(accumulate)::value, F>{out.dptr<T>(), f});
  });
}
template <typename T, typename F>
void Map(const RunContext& ctx, const TBlob& out, OpReqType req, F f) {
  MapOn<T>(OnCpu{ctx}, out, req, f);
}

}  // namespace mxtrain
