// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/slice/slice.h"

#include "mxtrain/operator/axes.h"

namespace mxtrain::slice {

StridedView ViewOf(const SliceAxisParam& param, const TShape& data) {
  const int axis = CheckAxis(param.axis, data, "slice_axis");
  const int64_t length = data[axis];
  const auto from_start = [length](int64_t index) { return index < 0 ? index + length : index; };
  const int64_t begin = from_start(param.begin), end = param.end ? from_start(*param.end) : length;
  if (begin < 0 || begin >= end || end > length) {
    Throw(ErrorKind::kConfig,
          "slice_axis: begin = {} and end = {} are not a range of axis {} of shape {}", param.begin,
          params::Print(param.end), axis, data.ToString());
  }
  StridedView view = StridedView::Whole(data);
  view.offset = begin * view.stride[axis];
  view.dim[axis] = end - begin;
  return view;
}

StridedView ViewOf(const ReverseParam& param, const TShape& data) {
  StridedView view = StridedView::Whole(data);
  for (const int64_t given : param.axis) {
    const int axis = CheckAxis(given, data, "reverse");
    if (view.stride[axis] < 0) Throw(ErrorKind::kConfig, "reverse: axis {} is repeated", given);
    view.offset += (data[axis] - 1) * view.stride[axis];
    view.stride[axis] = -view.stride[axis];
  }
  return view;
}

namespace {

template <typename Param>
TShape Shape(const TShape& src, const EnvArguments& env) {
  const StridedView view = ViewOf(env.As<Param>(), src);
  return TShape(std::span(view.dim, static_cast<size_t>(view.ndim)));
}

}  // namespace

MXTRAIN_OPERATOR(slice, registry) {
  SimpleOp(registry, "slice_axis")
      .set_kwargs_struct<SliceAxisParam>()
      .set_shape_function(Shape<SliceAxisParam>)
      .describe("extracts a range of one axis");
  SimpleOp(registry, "reverse")
      .set_kwargs_struct<ReverseParam>()
      .set_shape_function(Shape<ReverseParam>)
      .add_alias("flip")
      .describe("reverses the order along axes");
}

}  // namespace mxtrain::slice
