// SPDX-License-Identifier: Apache-2.0
#pragma once
// _ElementwiseChain, created by the fusion pass: several element-wise operators in one. Arrays pass
// through memory once: the kernel processes blocks that stay in the first-level cache, running
// every step on a block before the next. Backward repeats the steps of a block, then runs their
// gradients, and so reads only the arguments.
//
// `steps` is JSON, a list in order:
//
//   [{"op": "sigmoid", "params": {}, "in": [0]},
//    {"op": "elemwise_mul", "params": {}, "in": [0, 1]}]
//
// Values are numbered: the arguments first, then the result of each step. The last result is the
// output.
#include <memory>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

struct ElementwiseChainParam : Parameter<ElementwiseChainParam> {
  int num_args;
  std::string steps;
  static void Declare(Fields<ElementwiseChainParam>& f);
};

class ElementwiseChainProperty final : public PropertyWithParam<ElementwiseChainParam> {
 public:
  struct Step {
    std::shared_ptr<const OperatorProperty> op;
    std::vector<int> in;  // indices of values
  };

  // `registry` must outlive the property.
  explicit ElementwiseChainProperty(const OperatorRegistry& registry) : registry_(registry) {}

  const OperatorRegistry& registry() const { return registry_; }
  const std::vector<Step>& steps() const { return steps_; }

  std::string TypeString() const override { return "_ElementwiseChain"; }
  std::string Description() const override {
    return "several element-wise operators in one pass over memory (created by the fusion pass)";
  }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  Elementwise elementwise() const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override;
  std::vector<InplacePair> BackwardInplaceOption() const override;
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 protected:
  void Check() override;

 private:
  const OperatorRegistry& registry_;
  std::vector<Step> steps_;
};

}  // namespace mxtrain
