// SPDX-License-Identifier: Apache-2.0
#pragma once
// The definition of an operator, the same in every build: names, parameters, shapes, which arrays
// its gradient reads, which may share memory. It does not depend on a device; implementations are
// the kernels in the registry.
//
// A property is made by OperatorRegistry::Create, initialized once by Init and immutable
// afterwards, hence safe from every thread.
#include <string>
#include <vector>

#include "mxtrain/base/params.h"
#include "mxtrain/operator/operator.h"

namespace mxtrain {

class Backend;
class Lowering;
class OperatorRegistry;

// Whether every element of the output, and of each gradient, depends only on the elements at the
// same place in arrays of one shape. Then an array in an opaque layout can be treated as a flat
// array, with padding only if zeros map to zeros.
enum class Elementwise { kNo, kYes, kZeroToZero };

// How an operator takes part in mixed precision (executor/passes/amp.cc): with arguments in a
// narrow type it is computed in float32 and its result is rounded to that type.
struct MixedPrecision {
  enum Use : uint8_t {
    kNever,       // reads float32 only: losses, and what must not be rounded
    kFollows,     // runs narrow where an input already is
    kFollowsAll,  // runs narrow where all inputs already are
    kGains,       // is faster narrow: its inputs are converted
  };
  Use use = kNever;
  int arguments = -1;  // number of leading arguments that are narrow; -1: all
};

class MXTRAIN_API OperatorProperty {
 public:
  virtual ~OperatorProperty() = default;

  virtual std::string TypeString() const = 0;   // the registered name: "Convolution"
  virtual void Init(const Kwargs& kwargs) = 0;  // throws kConfig for unknown keys and bad values
  virtual Kwargs GetParams() const = 0;  // every parameter with its value, in declaration order
  virtual std::vector<FieldInfo> DescribeParams() const = 0;
  virtual std::string Description() const { return ""; }

  virtual std::vector<std::string> ListArguments() const { return {"data"}; }
  virtual std::vector<std::string> ListOutputs() const { return {"output"}; }
  virtual std::vector<std::string> ListAuxiliaryStates() const { return {}; }
  virtual int NumOutputs() const { return static_cast<int>(ListOutputs().size()); }
  virtual int NumVisibleOutputs() const { return NumOutputs(); }
  // Variadic operators (Concat, ElementWiseSum): the parameter that counts the inputs; "" for the
  // rest.
  virtual std::string NumArgsKey() const { return ""; }
  // A missing argument becomes a variable with this initializer ("constant" 0.25 for PReLU's
  // gamma), as JSON text; "" for none.
  virtual std::string DefaultInit(int argument) const { return (void)argument, ""; }

  // Infers in both directions as far as the operator can. Returns whether everything is known.
  // Throws kConfig, with both shapes, when shapes contradict. `in` has an entry per argument,
  // possibly with unknown parts; out and aux likewise.
  virtual bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                          std::vector<TShape>* aux) const = 0;
  // Default: one type for all arrays, including auxiliary states.
  virtual bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                         std::vector<DType>* aux) const;

  // For operators whose arguments all have the shape of the output.
  virtual Elementwise elementwise() const { return Elementwise::kNo; }

  virtual MixedPrecision mixed_precision() const { return {}; }

  // Ids of the arrays that the gradient reads, out of the given ones. Default: all.
  virtual std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                                     const std::vector<int>& in_data,
                                                     const std::vector<int>& out_data) const;
  // Loss operators: Backward reads no head gradient. Derived from DeclareBackwardDependency.
  bool NeedsHeadGradient() const;
  // Which inputs can have a gradient at all (labels cannot). Default: all.
  virtual bool HasGradient(int argument) const { return (void)argument, true; }

  virtual std::vector<InplacePair> ForwardInplaceOption() const { return {}; }
  virtual std::vector<InplacePair> BackwardInplaceOption() const { return {}; }
  // The output is the input, byte for byte, when both are plain (Flatten, Reshape, BlockGrad; the
  // gradients of an addition). The planner may turn it into an alias that never runs.
  virtual std::vector<InplacePair> ForwardIdentityOption() const { return {}; }
  virtual std::vector<InplacePair> BackwardIdentityOption() const { return {}; }

  virtual std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const {
    return (void)in_shape, std::vector<ResourceRequest>{};
  }
  virtual std::vector<ResourceRequest> BackwardResource(const std::vector<TShape>& in_shape) const {
    return (void)in_shape, std::vector<ResourceRequest>{};
  }

  // Composites (composite.h) build the graph of operators that computes the same and return true.
  // It is used where no kernel takes the operator. For arguments of known shapes.
  virtual bool Lower(Lowering* graph) const { return (void)graph, false; }

  // Multiply-adds of a forward pass, for `plan` and cost models. Default: elements of the outputs.
  virtual double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const;

  // The best kernel that accepts the request. Throws kConfig, with every refusal, if none does.
  Plan CreatePlan(const OperatorRegistry& registry, const PlanRequest& request,
                  Backend& backend) const;
};

// A property whose parameters are one typed struct P : Parameter<P>.
template <typename P>
class PropertyWithParam : public OperatorProperty {
 public:
  void Init(const Kwargs& kwargs) override {
    param_.Init(kwargs, TypeString());
    Check();
  }
  Kwargs GetParams() const override { return param_.ToKwargs(); }
  std::vector<FieldInfo> DescribeParams() const override { return P::Describe(); }
  const P& param() const { return param_; }

 protected:
  virtual void Check() {}  // relations between parameters; throws kConfig
  P param_;
};

// Merges `from` into `into`; throws kConfig "WHO: WHAT has shape A, but B was expected" on
// contradiction. For use in InferShape.
MXTRAIN_API void UnifyShape(const TShape& from, TShape* into, const std::string& who,
                            const std::string& what);

// Sets an unknown type to the one that the operator fixes; throws kConfig "WHO: WHAT is A, but B
// was expected" on contradiction. For use in InferType.
MXTRAIN_API void UnifyType(DType expected, DType* type, const std::string& who,
                           const std::string& what);

// InferShape for operators whose arrays all have one shape.
MXTRAIN_API bool InferSameShape(const OperatorProperty& property, std::vector<TShape>* in,
                                std::vector<TShape>* out);

}  // namespace mxtrain
