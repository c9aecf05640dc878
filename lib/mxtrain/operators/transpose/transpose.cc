// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/transpose/transpose.h"

#include <algorithm>
#include <utility>

#include "mxtrain/operator/axes.h"

namespace mxtrain::transpose {

Order OrderOf(const TransposeParam& param, const TShape& shape) {
  Order order;
  const int ndim = shape.ndim();
  if (param.axes.ndim() < 1) {
    for (int i = 0; i < ndim; ++i) order.axis[i] = ndim - 1 - i;
    return order;
  }
  if (param.axes.ndim() != ndim) {
    Throw(ErrorKind::kConfig, "transpose: axes = {} must contain each axis of shape {} once",
          param.axes.ToTuple(), shape.ToString());
  }
  for (int i = 0; i < ndim; ++i) {
    order.axis[i] = CheckAxis(param.axes[i], shape, "transpose");
    if (std::find(order.axis, order.axis + i, order.axis[i]) != order.axis + i) {
      Throw(ErrorKind::kConfig, "transpose: axes = {} must contain each axis of shape {} once",
            param.axes.ToTuple(), shape.ToString());
    }
  }
  return order;
}

Order OrderOf(const SwapAxisParam& param, const TShape& shape) {
  Order order;
  for (int i = 0; i < shape.ndim(); ++i) order.axis[i] = i;
  std::swap(order.axis[CheckAxis(param.dim1, shape, "SwapAxis")],
            order.axis[CheckAxis(param.dim2, shape, "SwapAxis")]);
  return order;
}

namespace {

template <typename Param>
TShape OutShape(const TShape& src, const EnvArguments& env) {
  const Order order = OrderOf(env.As<Param>(), src);
  TShape out = src;
  for (int i = 0; i < src.ndim(); ++i) out[i] = src[order.axis[i]];
  return out;
}

}  // namespace

MXTRAIN_OPERATOR(transpose, registry) {
  SimpleOp(registry, "transpose")
      .set_kwargs_struct<TransposeParam>()
      .set_shape_function(OutShape<TransposeParam>)
      .describe("permutes the axes");
  SimpleOp(registry, "SwapAxis")
      .set_kwargs_struct<SwapAxisParam>()
      .set_shape_function(OutShape<SwapAxisParam>)
      .add_alias("swapaxes")
      .describe("swaps two axes");
}

}  // namespace mxtrain::transpose
