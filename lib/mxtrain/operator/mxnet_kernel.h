// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the bodies of MXNet's operators use besides tensor expressions (docs/mxnet_forms.md): the
// switch over element types and the assignment that honours the request, on the CPU.
//
//   MXTRAIN_REAL_TYPE_SWITCH(ret->type, Real, {
//     const Real* x = src.dptr<Real>();
//     Assign(FlatTo1D<Real>(*ret), req, [=](int64_t i) { return x[i] * x[i]; });
//   });
#include <span>
#include <type_traits>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/mxnet_tensor.h"

// Runs the block with `Real` as the floating type of an array; other types throw kConfig.
#define MXTRAIN_REAL_TYPE_SWITCH(type, Real, ...) \
  ::mxtrain::SwitchFloating(type, __func__,       \
                            [&]<typename Real>(::mxtrain::TypeTag<Real>) { __VA_ARGS__ })

// As above, for every type.
#define MXTRAIN_TYPE_SWITCH(type, Type, ...) \
  ::mxtrain::SwitchType(type, __func__,      \
                        [&]<typename Type>(::mxtrain::TypeTag<Type>) { __VA_ARGS__ })

namespace mxtrain::mxnet {

using enum mxtrain::OpReqType;  // kNullOp, kWriteTo, kWriteInplace, kAddTo

// The elements of a plain array, row by row. T is its type.
template <typename T>
std::span<T> FlatTo1D(const mxtrain::TBlob& blob) {
  MXTRAIN_ASSERT(blob.type == DTypeOf<T>::value && blob.layout.plain());
  return {blob.dptr<T>(), static_cast<size_t>(blob.Size())};
}

// out[i] = or += the expression at i, as `req` says; nothing for kNullOp. An expression is a
// function of int64_t i, a contiguous range of the length of `out`, or a number for all elements.
// Runs on the threads of the worker.
template <typename T, typename Exp>
void Assign(std::span<T> out, OpReqType req, const Exp& exp) {
  const mxtrain::TBlob target{
      out.data(), {static_cast<int64_t>(out.size())}, DTypeOf<T>::value, Layout(), Context::cpu()};
  const OnCpu device{};
  if constexpr (std::is_invocable_v<const Exp&, int64_t>) {
    MapOn<T>(device, target, req, exp);
  } else if constexpr (requires { exp.size(); }) {
    MXTRAIN_ASSERT(exp.size() == out.size());
    MapOn<T>(device, target, req,
             [values = std::span(exp)](int64_t i) { return values[static_cast<size_t>(i)]; });
  } else {
    using Wide = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
    const T value = ElementOf<T>(static_cast<Wide>(exp));
    MapOn<T>(device, target, req, [value](int64_t) { return value; });
  }
}

}  // namespace mxtrain::mxnet
