// SPDX-License-Identifier: Apache-2.0
#pragma once
// SimpleOps in MXNet's form (docs/mxnet_forms.md): simple_op.h with MXNet's arrays and with
// resources that say get_space and get_random. The names mean MXNet's classes in namespace
// mxtrain::mxnet:
//
//   template <typename xpu>
//   void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
//                RunContext ctx) {
//     auto space = env.resource[0].get_space(src.shape_, ctx.get_stream<xpu>());
//     ...
//   }
//   MXTRAIN_OPERATOR(noisy, registry) {
//     SimpleOp(registry, "noisy")
//         .set_function(cpu::kDevMask, Forward<cpu>, kNoInplace)
//         .set_resource_request(ResourceRequest::kTempSpace);
//   }
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/operator/mxnet_resource.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::mxnet {

using mxtrain::SimpleOpInplaceOption;
using enum mxtrain::SimpleOpInplaceOption;

struct EnvArguments {
  real_t scalar = 0;                                        // when enabled
  std::vector<std::pair<std::string, std::string>> kwargs;  // when enabled
  std::vector<Resource> resource;   // answers to set_resource_request, in its order
  std::vector<Resource> resources;  // the same, as the guide's text calls them
};

struct GradFunctionArgument {
  TBlob data;
};
struct OutputGrad : GradFunctionArgument {};
struct OutputValue : GradFunctionArgument {};
struct Input : GradFunctionArgument {};
struct Input0 : Input {};
struct Input1 : Input {};

using UnaryShapeFunction = TShape (*)(const TShape& src, const EnvArguments& env);
using BinaryShapeFunction = TShape (*)(const TShape& lhs, const TShape& rhs,
                                       const EnvArguments& env);
using UnaryFunction = void (*)(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                               RunContext ctx);
using BinaryFunction = void (*)(const TBlob& lhs, const TBlob& rhs, const EnvArguments& env,
                                TBlob* ret, OpReqType req, RunContext ctx);
using UnaryGradFunctionT0 = void (*)(const OutputGrad& out_grad, const EnvArguments& env,
                                     TBlob* in_grad, OpReqType req, RunContext ctx);
using UnaryGradFunctionT1 = void (*)(const OutputGrad& out_grad, const OutputValue& out_value,
                                     const EnvArguments& env, TBlob* in_grad, OpReqType req,
                                     RunContext ctx);
using UnaryGradFunctionT2 = void (*)(const OutputGrad& out_grad, const Input0& in_data0,
                                     const EnvArguments& env, TBlob* in_grad, OpReqType req,
                                     RunContext ctx);
using BinaryGradFunctionT0 = void (*)(const OutputGrad& out_grad, const EnvArguments& env,
                                      TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs,
                                      OpReqType req_rhs, RunContext ctx);
using BinaryGradFunctionT1 = void (*)(const OutputGrad& out_grad, const OutputValue& out_value,
                                      const EnvArguments& env, TBlob* lhs_grad, TBlob* rhs_grad,
                                      OpReqType req_lhs, OpReqType req_rhs, RunContext ctx);
using BinaryGradFunctionT2 = void (*)(const OutputGrad& out_grad, const Input0& lhs,
                                      const Input1& rhs, const EnvArguments& env, TBlob* lhs_grad,
                                      TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs,
                                      RunContext ctx);

// What is not said here is as in mxtrain::SimpleOp. The operator has plain arrays. Each call gets a
// copy of the environment, in a few small allocations.
class MXTRAIN_API SimpleOp {
 public:
  SimpleOp(OperatorRegistry& registry, const std::string& name);

  SimpleOp& set_shape_function(UnaryShapeFunction function);
  SimpleOp& set_shape_function(BinaryShapeFunction function);
  SimpleOp& set_function(DeviceType device, UnaryFunction function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_function(DeviceType device, BinaryFunction function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT0 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT1 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT2 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT0 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT1 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT2 function,
                         SimpleOpInplaceOption inplace = kNoInplace);
  SimpleOp& set_enable_scalar(bool enable);
  SimpleOp& set_enable_kwargs(bool enable);
  // Each adds to the requests before it. For both the function and the gradient.
  SimpleOp& set_resource_request(ResourceRequest request);
  SimpleOp& set_resource_request(const std::vector<ResourceRequest>& requests);
  SimpleOp& set_resource_request(std::initializer_list<ResourceRequest> requests) {
    return set_resource_request(std::vector<ResourceRequest>(requests));
  }
  SimpleOp& describe(const std::string& text);

  // The same declaration, for what MXNet's has not: element types, names of arguments.
  mxtrain::SimpleOp& native() { return op_; }

 private:
  OperatorRegistry& registry_;
  std::string name_;
  mxtrain::SimpleOp op_;
};

}  // namespace mxtrain::mxnet
