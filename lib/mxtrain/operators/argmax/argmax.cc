// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/argmax/argmax.h"

#include "mxtrain/operator/simple_op.h"

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

int64_t BytesOfParts(const Columns& columns) {
  return columns.whole()
             ? 0
             : columns.count() * columns.slices.count * static_cast<int64_t>(sizeof(Found));
}

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return Without(src, env.As<ArgParam>(), F::kName);
}
TShape ChannelShape(const TShape& src, const EnvArguments&) {
  return Without(src, ChannelParam(), "argmax_channel");
}

template <typename F>
void Describe(OperatorRegistry& registry, const char* text) {
  SimpleOp(registry, F::kName)
      .set_kwargs_struct<ArgParam>()
      .set_shape_function(Shape<F>)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace,
                            [](const std::vector<TShape>& in, const EnvArguments& env) {
                              return BytesOfParts(Columns(in[0], env.As<ArgParam>(), F::kName));
                            })
      .describe(text);
}

}  // namespace

MXTRAIN_OPERATOR(argmax, registry) {
  Describe<Largest>(registry, "index along an axis of the largest element");
  Describe<Smallest>(registry, "index along an axis of the smallest element");
  SimpleOp(registry, "argmax_channel")
      .set_shape_function(ChannelShape)
      .set_types(kFloatingTypes)
      .set_resource_request(ResourceRequest::kTempSpace,
                            [](const std::vector<TShape>& in, const EnvArguments&) {
                              return BytesOfParts(Columns(in[0], ChannelParam(), "argmax_channel"));
                            })
      .describe("index along axis 1 of the largest element");
}

}  // namespace mxtrain::argmax
