// SPDX-License-Identifier: Apache-2.0
#pragma once
// cumsum: sums of the elements up to and including each, along an axis; without an axis those of
// the flattened array, as a vector. The gradient is the same from the other end.
#include <optional>

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/axis_split.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::cumsum {

struct CumsumParam : Parameter<CumsumParam> {
  std::optional<int> axis;
  std::optional<DType> dtype;
  static void Declare(Fields<CumsumParam>& f) {
    f.Add("axis", &CumsumParam::axis)
        .Default(std::nullopt)
        .Help("axis of the sums, negative from the end; None: the array is flattened");
    f.Add("dtype", &CumsumParam::dtype)
        .Default(std::nullopt)
        .Help("only None: the result has the type of the data");
  }
};

// The columns of an array along the axis.
inline AxisSplit ColumnsOf(const TShape& shape, const CumsumParam& param) {
  if (param.axis) return {shape, CheckAxis(*param.axis, shape, "cumsum")};
  AxisSplit split;
  split.length = shape.Size();
  return split;
}

// Sums over a column, from its first element or from its last one.
template <typename T>
struct ScanColumn {
  using A = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  AxisSplit split;
  bool from_last;
  const T* x;
  T* y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t column) const {
    if (team.rank() != 0) return;
    const int64_t first = column / split.inner * split.length * split.inner + column % split.inner;
    A sum = 0;
    for (int64_t k = 0; k < split.length; ++k) {
      const int64_t i = first + (from_last ? split.length - 1 - k : k) * split.inner;
      sum = Plus(sum, static_cast<A>(x[i]));
      Assign(req, y, i, sum);
    }
  }
};

template <typename Device>
void Scan(const TBlob& from, const TShape& shape, const EnvArguments& env, bool from_last,
          OpReqType req, const TBlob& to, RunContext ctx) {
  if (req == OpReqType::kNullOp) return;
  const AxisSplit split = ColumnsOf(shape, env.As<CumsumParam>());
  if (shape.Size() == 0) return;
  SwitchType(from.type, "cumsum", [&](auto tag) {
    using T = typename decltype(tag)::type;
    ForColumns(Device{ctx}, split.columns(), split.length,
               ScanColumn<T>{split, from_last, from.dptr<T>(), to.dptr<T>(), req});
  });
}
template <typename Device>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  Scan<Device>(src, src.shape, env, false, req, *ret, ctx);
}
template <typename Device>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  Scan<Device>(head.data, in_grad->shape, env, true, req, *in_grad, ctx);
}

}  // namespace mxtrain::cumsum

MXTRAIN_KERNELS(cumsum, Device, registry) {
  using namespace mxtrain;
  SimpleOp(registry, "cumsum")
      .set_function(Device::kType, cumsum::Forward<Device>, kNoInplace)
      .set_gradient(Device::kType, cumsum::Backward<Device>, kNoInplace);
}
