// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/broadcast_to/broadcast_to.h"

#include "mxtrain/operator/axes.h"
#include "mxtrain/operator/reduction.h"

namespace mxtrain::broadcast_to {
namespace {

// Extends axis `axis` of `out`, which has length 1 or `length` in `src`, to `length`.
void Repeat(const TShape& src, int axis, int64_t length, const char* who, TShape* out) {
  if (src[axis] != 1 && src[axis] != length) {
    Throw(ErrorKind::kConfig,
          "{}: axis {} of shape {} cannot be repeated to length {}; it must have length 1", who,
          axis, src.ToString(), length);
  }
  (*out)[axis] = length;
}

TShape AxisShape(const TShape& src, const EnvArguments& env) {
  const auto& param = env.As<BroadcastAxisParam>();
  if (param.axis.ndim() != param.size.ndim()) {
    Throw(ErrorKind::kConfig,
          "broadcast_axis: axis = {} and size = {} must have equally many entries",
          param.axis.ToTuple(), param.size.ToTuple());
  }
  TShape out = src;
  for (int i = 0; i < param.axis.ndim(); ++i) {
    Repeat(src, CheckAxis(param.axis[i], src, "broadcast_axis"), param.size[i], "broadcast_axis",
           &out);
  }
  return out;
}

TShape ToShape(const TShape& src, const EnvArguments& env) {
  const TShape& shape = env.As<BroadcastToParam>().shape;
  if (shape.ndim() != src.ndim()) {
    Throw(ErrorKind::kConfig,
          "broadcast_to: shape = {} must have as many axes as the data of shape {}",
          shape.ToTuple(), src.ToString());
  }
  TShape out = src;
  for (int i = 0; i < src.ndim(); ++i) {
    if (shape[i] != 0) Repeat(src, i, shape[i], "broadcast_to", &out);
  }
  return out;
}

TShape LikeShape(const TShape& lhs, const TShape& rhs, const EnvArguments& env) {
  const auto& param = env.As<BroadcastLikeParam>();
  TShape out = lhs;
  if (!param.lhs_axes && !param.rhs_axes) {
    if (lhs.ndim() != rhs.ndim()) {
      Throw(ErrorKind::kConfig,
            "broadcast_like: lhs {} and rhs {} must have equally many axes; otherwise give "
            "lhs_axes and rhs_axes",
            lhs.ToString(), rhs.ToString());
    }
    for (int i = 0; i < lhs.ndim(); ++i) Repeat(lhs, i, rhs[i], "broadcast_like", &out);
    return out;
  }
  if (!param.lhs_axes || !param.rhs_axes || param.lhs_axes->ndim() != param.rhs_axes->ndim()) {
    Throw(
        ErrorKind::kConfig,
        "broadcast_like: lhs_axes and rhs_axes must be given together, with equally many entries");
  }
  for (int i = 0; i < param.lhs_axes->ndim(); ++i) {
    const int from = CheckAxis((*param.rhs_axes)[i], rhs, "broadcast_like");
    Repeat(lhs, CheckAxis((*param.lhs_axes)[i], lhs, "broadcast_like"), rhs[from], "broadcast_like",
           &out);
  }
  return out;
}

template <UnaryShapeFunction kShape>
int64_t Scratch(const std::vector<TShape>& in, const EnvArguments& env) {
  return SumScratchBytes(kShape(in[0], env), in[0]);
}
int64_t LikeScratch(const std::vector<TShape>& in, const EnvArguments& env) {
  return SumScratchBytes(LikeShape(in[0], in[1], env), in[0]);
}

}  // namespace

MXTRAIN_OPERATOR(broadcast_to, registry) {
  SimpleOp(registry, "broadcast_axis")
      .set_kwargs_struct<BroadcastAxisParam>()
      .set_shape_function(AxisShape)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace, Scratch<AxisShape>)
      .add_alias("broadcast_axes")
      .describe("repeats axes of length one to given lengths");
  SimpleOp(registry, "broadcast_to")
      .set_kwargs_struct<BroadcastToParam>()
      .set_shape_function(ToShape)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace, Scratch<ToShape>)
      .describe("repeats axes of length one to a shape");
  SimpleOp(registry, "broadcast_like")
      .set_kwargs_struct<BroadcastLikeParam>()
      .set_shape_function(LikeShape)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace, LikeScratch)
      .describe("repeats axes of length one to the shape of another array");
}

}  // namespace mxtrain::broadcast_to
