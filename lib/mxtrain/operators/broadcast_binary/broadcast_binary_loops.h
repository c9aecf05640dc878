// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of broadcasting binary functions, written once for both devices: Device is OnCpu or
// OnGpu.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::broadcast_binary {

// Some axes of the output, with the strides of each in the output, in one operand and in the other.
struct Axes {
  struct Offsets {
    int64_t out = 0, own = 0, other = 0;
  };
  int ndim = 0;
  int64_t size = 1;
  int64_t dim[TShape::kMaxDims] = {};
  Offsets stride[TShape::kMaxDims];

  void Add(int64_t length, Offsets step) {
    dim[ndim] = length;
    stride[ndim++] = step;
    size *= length;
  }
  MXTRAIN_HD Offsets At(int64_t index) const {
    Offsets at;
    for (int i = ndim - 1; i >= 0; --i) {
      const int64_t k = index % dim[i];
      index /= dim[i];
      at.out += k * stride[i].out;
      at.own += k * stride[i].own;
      at.other += k * stride[i].other;
    }
    return at;
  }
};

// The stride of axis i of the output in an operand: 0 if it is repeated.
inline int64_t StrideIn(const TShape& operand, const TShape& out, int i) {
  return operand[i] != out[i] ? 0 : operand.Product(i + 1, operand.ndim());
}

template <typename F, typename T>
struct ValueAt {
  const T *a, *b;
  Axes all;
  MXTRAIN_HD ComputeOf<T> operator()(int64_t i) const {
    const Axes::Offsets at = all.At(i);
    return F::Value(static_cast<ComputeOf<T>>(a[at.own]), static_cast<ComputeOf<T>>(b[at.other]));
  }
};

template <typename Device, typename F>
void Forward(const TBlob& lhs, const TBlob& rhs, const EnvArguments&, TBlob* ret, OpReqType req,
             RunContext ctx) {
  Axes all;
  for (int i = 0; i < ret->shape.ndim(); ++i) {
    all.Add(ret->shape[i],
            {0, StrideIn(lhs.shape, ret->shape, i), StrideIn(rhs.shape, ret->shape, i)});
  }
  SwitchFloating(ret->type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapOn<T>(Device{ctx}, *ret, req, ValueAt<F, T>{lhs.dptr<T>(), rhs.dptr<T>(), all});
  });
}

// An operand's own axes, and those along which it is repeated.
struct Split {
  Axes own, repeated;
};
inline Split SplitAxes(const TShape& out, const TShape& operand, const TShape& other) {
  Split split;
  for (int i = 0; i < out.ndim(); ++i) {
    Axes& axes = operand[i] != out[i] ? split.repeated : split.own;
    axes.Add(out[i],
             {out.Product(i + 1, out.ndim()), StrideIn(operand, out, i), StrideIn(other, out, i)});
  }
  return split;
}

template <typename F>
struct LeftSlope {
  MXTRAIN_HD double operator()(double own, double other) const { return F::Left(own, other); }
};
template <typename F>
struct RightSlope {
  MXTRAIN_HD double operator()(double own, double other) const { return F::Right(other, own); }
};

// own_grad = the sum of slope(own, other) * head over the repeated axes, in double. Without values
// (null) the slope is constant.
template <typename T, typename Slope>
struct GradientKernel {
  Split split;
  const T *head, *own_values, *other_values;
  T* own_grad;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const Axes::Offsets base = split.own.At(i);
    double sum = 0;
    for (int64_t k = team.rank(); k < split.repeated.size; k += team.size()) {
      const Axes::Offsets step = split.repeated.At(k);
      const double own = own_values ? static_cast<double>(own_values[base.own]) : 0;
      const double met =
          other_values ? static_cast<double>(other_values[base.other + step.other]) : 0;
      const double factor = Slope()(own, met);
      if (factor != 0) sum += factor * static_cast<double>(head[base.out + step.out]);
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, own_grad, i, static_cast<ComputeOf<T>>(sum));
  }
};

template <typename T, typename Slope, typename Device>
void GradientOf(const Device& device, const TBlob& head, const TShape& other, const T* own_values,
                const T* other_values, const TBlob& own_grad, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  const Split split = SplitAxes(head.shape, own_grad.shape, other);
  const GradientKernel<T, Slope> row{split,        head.dptr<T>(),     own_values,
                                     other_values, own_grad.dptr<T>(), req};
  if (split.repeated.size == 1) return ForColumns(device, split.own.size, 1, row);
  ForRows(device, split.own.size, split.repeated.size, row);
}

template <typename Device, typename F>
void Backward(const TBlob& head, const void* lhs, const void* rhs, TBlob* lhs_grad, TBlob* rhs_grad,
              OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  SwitchFloating(head.type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T *a = static_cast<const T*>(lhs), *b = static_cast<const T*>(rhs);
    GradientOf<T, RightSlope<F>>(Device{ctx}, head, lhs_grad->shape, b, a, *rhs_grad, req_rhs);
    GradientOf<T, LeftSlope<F>>(Device{ctx}, head, rhs_grad->shape, a, b, *lhs_grad, req_lhs);
  });
}
template <typename Device, typename F>
void GradientOfInputs(const OutputGrad& head, const Input0& lhs, const Input1& rhs,
                      const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs,
                      OpReqType req_rhs, RunContext ctx) {
  Backward<Device, F>(head.data, lhs.data.data, rhs.data.data, lhs_grad, rhs_grad, req_lhs, req_rhs,
                      ctx);
}
template <typename Device, typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad,
                    OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  Backward<Device, F>(head.data, nullptr, nullptr, lhs_grad, rhs_grad, req_lhs, req_rhs, ctx);
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kBroadcastName);
    op.set_function(Device::kType, Forward<Device, F>, kInplaceLhsOut);
    if constexpr (F::kSlopes == elemwise_binary::Slopes::kInputs) {
      op.set_gradient(Device::kType, GradientOfInputs<Device, F>, kNoInplace);
    } else {
      op.set_gradient(Device::kType, GradientOfHead<Device, F>, kNoInplace);
    }
  });
}

}  // namespace mxtrain::broadcast_binary
