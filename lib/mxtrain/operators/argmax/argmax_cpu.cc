// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/argmax/argmax.h"

namespace mxtrain::argmax {
namespace {

// Throws if the axis has no elements: there is no index to return.
void CheckLength(const TShape& src, const ArgParam& param, const char* who) {
  const int64_t length = param.axis ? src[CheckAxis(*param.axis, src, who)] : src.Size();
  if (length > 0) return;
  const std::string where =
      param.axis ? format("axis {} of {}", *param.axis, src.ToString()) : src.ToString();
  Throw(ErrorKind::kConfig, "{}: {} has no elements; expected at least one", who, where);
}

TShape Without(const TShape& src, const ArgParam& param, const char* who) {
  CheckLength(src, param, who);
  std::vector<int64_t> dims(src.begin(), src.end());
  if (!param.axis) {
    dims.assign(param.keepdims ? dims.size() : 1, 1);
  } else if (const int axis = CheckAxis(*param.axis, src, who); param.keepdims) {
    dims[static_cast<size_t>(axis)] = 1;
  } else {
    dims.erase(dims.begin() + axis);
  }
  if (dims.empty()) dims.push_back(1);
  return TShape(dims);
}

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return Without(src, env.As<ArgParam>(), F::kName);
}
TShape ChannelShape(const TShape& src, const EnvArguments&) {
  return Without(src, ChannelParam(), "argmax_channel");
}

}  // namespace

MXTRAIN_OPERATOR(argmax_cpu, registry) {
  AddKernels<OnCpu>(registry);
  SimpleOp(registry, "argmax")
      .set_shape_function(Shape<Largest>)
      .set_types(kFloatingTypes)
      .set_kwargs_struct<ArgParam>()
      .describe("index along an axis of the largest element");
  SimpleOp(registry, "argmin")
      .set_shape_function(Shape<Smallest>)
      .set_types(kFloatingTypes)
      .set_kwargs_struct<ArgParam>()
      .describe("index along an axis of the smallest element");
  SimpleOp(registry, "argmax_channel")
      .set_shape_function(ChannelShape)
      .set_types(kFloatingTypes)
      .describe("index along axis 1 of the largest element");
}

}  // namespace mxtrain::argmax
