// SPDX-License-Identifier: Apache-2.0
#pragma once
// One declaration defines an NDArray function and a Symbol operator, for operators with one or two
// inputs and one output. For other operators, write an OperatorProperty.
//
//   MXTRAIN_OPERATOR(smooth_l1, registry) {
//     SimpleOp(registry, "smooth_l1")
//         .set_function(DeviceType::kCPU, Forward, kNoInplace)
//         .set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn)
//         .set_enable_scalar(true)
//         .describe("...");
//   }
//
// A second SimpleOp object of the same name adds to the same entry (so does MXTRAIN_KERNELS with
// its functions). Each function becomes a kernel of the lowest rank; OperatorRegistry::AddKernel
// adds better ones, whose plan functions read the parameters by ArgumentsOf. Binding an operator
// without a gradient fails if its gradient is needed. Invalid declarations (unary and binary
// functions mixed, a gradient before its function, an option of the other arity) throw kConfig at
// the offending call.
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

struct EnvArguments {
  double scalar = 0;                   // when enabled
  Kwargs kwargs;                       // when enabled
  std::shared_ptr<const void> parsed;  // kwargs as the struct of set_kwargs_struct
  std::vector<Resource> resource;      // answers to set_resource_request, in its order

  template <typename P>
  const P& As() const {
    return *static_cast<const P*>(parsed.get());
  }
};

struct GradFunctionArgument {
  TBlob data;
};
struct OutputGrad : GradFunctionArgument {};
struct OutputValue : GradFunctionArgument {};
struct Input0 : GradFunctionArgument {};
struct Input1 : GradFunctionArgument {};

enum SimpleOpInplaceOption {
  kNoInplace,
  kInplaceInOut,   // unary: data with out
  kInplaceOutIn,   // unary: out_grad with in_grad
  kInplaceLhsOut,  // binary: lhs with out
  kInplaceOutLhs,  // binary: out_grad with lhs_grad
};

using UnaryShapeFunction = TShape (*)(const TShape& src, const EnvArguments& env);
using BinaryShapeFunction = TShape (*)(const TShape& lhs, const TShape& rhs,
                                       const EnvArguments& env);
using UnaryFunction = void (*)(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                               RunContext ctx);
using BinaryFunction = void (*)(const TBlob& lhs, const TBlob& rhs, const EnvArguments& env,
                                TBlob* ret, OpReqType req, RunContext ctx);
// T0 reads only the head gradient, T1 also the output, T2 also the input(s).
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

class MXTRAIN_API SimpleOp {
 public:
  SimpleOp(OperatorRegistry& registry, const std::string& name);

  // Without a shape function the output has the input's shape; two inputs must agree.
  SimpleOp& set_shape_function(UnaryShapeFunction function);
  SimpleOp& set_shape_function(BinaryShapeFunction function);
  SimpleOp& set_function(DeviceType device, UnaryFunction function, SimpleOpInplaceOption inplace);
  SimpleOp& set_function(DeviceType device, BinaryFunction function, SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT0 function,
                         SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT1 function,
                         SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, UnaryGradFunctionT2 function,
                         SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT0 function,
                         SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT1 function,
                         SimpleOpInplaceOption inplace);
  SimpleOp& set_gradient(DeviceType device, BinaryGradFunctionT2 function,
                         SimpleOpInplaceOption inplace);
  // A scalar parameter `scalar`, or any keyword arguments. Enabling both throws kConfig. Imperative
  // calls on plain arrays that differ only in the scalar share a plan (Plan::takes_scalar), unless
  // it may decide a shape or a size: with a shape function or a sized resource.
  SimpleOp& set_enable_scalar(bool enable, double default_value = 1);
  SimpleOp& set_enable_kwargs(bool enable);
  // Declares the keyword arguments, which gives parsing, `ops` and errors; functions read
  // env.As<P>(). Without it all keys are passed through as text.
  template <typename P>
  SimpleOp& set_kwargs_struct() {
    return set_kwargs_schema(P::Describe(), [](const Kwargs& kwargs, std::string_view owner) {
      auto parsed = std::make_shared<P>();
      parsed->Init(kwargs, owner);
      return ParsedKwargs{parsed->ToKwargs(), parsed};
    });
  }
  struct ParsedKwargs {
    Kwargs kwargs;  // every parameter with its value
    std::shared_ptr<const void> parsed;
  };
  using ParseKwargs = std::function<ParsedKwargs(const Kwargs& kwargs, std::string_view owner)>;
  SimpleOp& set_kwargs_schema(std::vector<FieldInfo> fields, ParseKwargs parse);
  // Scratch whose size follows from the input shape(s), or without `bytes` is said when the
  // function takes it; or random numbers. For both the function and the gradient.
  using ResourceBytes =
      std::function<int64_t(const std::vector<TShape>& in, const EnvArguments& env)>;
  SimpleOp& set_resource_request(ResourceRequest::Type type, ResourceBytes bytes = {});
  SimpleOp& set_elementwise(Elementwise elementwise);
  // As above, depending on the parameters.
  SimpleOp& set_elementwise(std::function<Elementwise(const EnvArguments& env)> elementwise);
  // Instead, for functions that read TBlob::layout: the layouts of the inputs and, last, of the
  // output.
  using LayoutFunction = std::function<std::vector<Layout>(const PlanRequest& request)>;
  SimpleOp& set_layout_function(LayoutFunction function);
  // Default: kNever.
  SimpleOp& set_mixed_precision(MixedPrecision mixed_precision);
  // Element types that the functions support; planning a call with others fails. Default: every
  // type.
  SimpleOp& set_types(std::vector<DType> types);
  // Pairs whose output is the input byte for byte: data to output in forward, head gradient to
  // argument in backward.
  SimpleOp& set_identity(std::vector<InplacePair> forward, std::vector<InplacePair> backward);
  // Default: "data", or "lhs" and "rhs".
  SimpleOp& set_arguments(std::vector<std::string> names);
  SimpleOp& add_alias(const std::string& alias);
  SimpleOp& describe(const std::string& text);

  // The parameters of a SimpleOp's property, without resources. Throws kBug for other operators.
  static const EnvArguments& ArgumentsOf(const OperatorProperty& property);

  struct Entry;  // shared by all SimpleOp objects of the name, its properties and its kernels

 private:
  std::shared_ptr<Entry> entry_;
};

}  // namespace mxtrain
