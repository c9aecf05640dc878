// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/mxnet_simple_op.h"

#include <tuple>

#include "mxtrain/operator/internal/simple_op_entries.h"

namespace mxtrain::mxnet {
namespace {

using mxtrain::simple_op::Calls;

// An argument in MXNet's form, made of the library's. `value` is what the function gets.
template <typename To>
struct Argument {
  template <typename From>
  Argument(const From& from, Context) : value(from) {}
  To value;
};
// Arrays that a function writes are passed by their address.
template <>
struct Argument<TBlob*> {
  Argument(const mxtrain::TBlob* from, Context) : blob(*from), value(&blob) {}
  TBlob blob;
  TBlob* value;
};
template <>
struct Argument<EnvArguments> {
  Argument(const mxtrain::EnvArguments& from, Context ctx)
      : value{static_cast<real_t>(from.scalar), from.kwargs, {}, {}} {
    for (const mxtrain::Resource& granted : from.resource)
      value.resource.emplace_back(granted, ctx);
    value.resources = value.resource;
  }
  EnvArguments value;
};
template <typename To>
struct ArrayArgument {
  ArrayArgument(const mxtrain::GradFunctionArgument& from, Context) : value{} {
    value.data = from.data;
  }
  To value;
};
template <>
struct Argument<OutputGrad> : ArrayArgument<OutputGrad> {
  using ArrayArgument::ArrayArgument;
};
template <>
struct Argument<OutputValue> : ArrayArgument<OutputValue> {
  using ArrayArgument::ArrayArgument;
};
template <>
struct Argument<Input0> : ArrayArgument<Input0> {
  using ArrayArgument::ArrayArgument;
};
template <>
struct Argument<Input1> : ArrayArgument<Input1> {
  using ArrayArgument::ArrayArgument;
};

Context ContextOf(const mxtrain::RunContext& ctx) {
  return ctx.ctx;
}
// Shape functions run nowhere, and get no resources.
Context ContextOf(const mxtrain::EnvArguments&) {
  return {};
}

template <typename Result, typename... To>
auto Adapt(Result (*function)(To...)) {
  return [function](const auto&... from) -> Result {
    const Context ctx = ContextOf(std::get<sizeof...(from) - 1>(std::tie(from...)));
    return function(Argument<std::decay_t<To>>(from, ctx).value...);
  };
}

}  // namespace

SimpleOp::SimpleOp(OperatorRegistry& registry, const std::string& name)
    : registry_(registry), name_(name), op_(registry, name) {}

SimpleOp& SimpleOp::set_shape_function(UnaryShapeFunction function) {
  Calls::SetShape(registry_, name_, Calls::Of<mxtrain::UnaryShapeFunction>(Adapt(function)));
  return *this;
}
SimpleOp& SimpleOp::set_shape_function(BinaryShapeFunction function) {
  Calls::SetShape(registry_, name_, Calls::Of<mxtrain::BinaryShapeFunction>(Adapt(function)));
  return *this;
}
SimpleOp& SimpleOp::set_function(DeviceType device, UnaryFunction function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetFunction(registry_, name_, device, Calls::Of<mxtrain::UnaryFunction>(Adapt(function)),
                     inplace);
  return *this;
}
SimpleOp& SimpleOp::set_function(DeviceType device, BinaryFunction function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetFunction(registry_, name_, device, Calls::Of<mxtrain::BinaryFunction>(Adapt(function)),
                     inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT0 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::UnaryGradFunctionT0>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT1 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::UnaryGradFunctionT1>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, UnaryGradFunctionT2 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::UnaryGradFunctionT2>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT0 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::BinaryGradFunctionT0>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT1 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::BinaryGradFunctionT1>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_gradient(DeviceType device, BinaryGradFunctionT2 function,
                                 SimpleOpInplaceOption inplace) {
  Calls::SetGradient(registry_, name_, device,
                     Calls::Of<mxtrain::BinaryGradFunctionT2>(Adapt(function)), inplace);
  return *this;
}
SimpleOp& SimpleOp::set_enable_scalar(bool enable) {
  op_.set_enable_scalar(enable);
  return *this;
}
SimpleOp& SimpleOp::set_enable_kwargs(bool enable) {
  op_.set_enable_kwargs(enable);
  return *this;
}
SimpleOp& SimpleOp::set_resource_request(ResourceRequest request) {
  mxtrain::SimpleOp::ResourceBytes bytes;
  if (request.type == ResourceRequest::kTempSpace && request.bytes != request.kUnknownSize)
    bytes = [size = request.bytes](const auto&, const auto&) { return size; };
  op_.set_resource_request(request.type, std::move(bytes));
  return *this;
}
SimpleOp& SimpleOp::set_resource_request(const std::vector<ResourceRequest>& requests) {
  for (const ResourceRequest& request : requests) set_resource_request(request);
  return *this;
}
SimpleOp& SimpleOp::describe(const std::string& text) {
  op_.describe(text);
  return *this;
}

}  // namespace mxtrain::mxnet
