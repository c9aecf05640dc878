// SPDX-License-Identifier: Apache-2.0
#pragma once
// _ElementwiseChain, created by the fusion pass: several operators in one that need no more than a
// row of their arrays at a time (operator/chain_step.h). Arrays pass through memory once: the
// kernel processes blocks that stay in cache, running every step on a block before the next.
// Backward repeats those steps of a block whose results the gradients read, then runs the
// gradients.
//
// `steps` is JSON, a list in order:
//
//   [{"op": "sigmoid", "params": {}, "in": [0]},
//    {"op": "elemwise_mul", "params": {}, "in": [0, 1]}]
//
// Values are numbered: the arguments first, then the result of each step. The last result is the
// output. Its shape is that of the whole; arguments may be repeated along some axes of it. One step
// may be a Dropout.
#include <memory>

#include "mxtrain/operator/chain_step.h"
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
    ChainStep kind;
    std::shared_ptr<const OperatorProperty> op;
    std::vector<int> in;  // indices of values
  };

  // `registry` must outlive the property.
  explicit ElementwiseChainProperty(const OperatorRegistry& registry) : registry_(registry) {}

  const OperatorRegistry& registry() const { return registry_; }
  const std::vector<Step>& steps() const { return steps_; }
  // The number of the Dropout; -1 if there is none.
  int dropout() const { return dropout_; }
  // Of every value: whether gradients read it. The last one is then read from the output; arguments
  // are those of DeclareBackwardDependency; other results are computed again.
  const std::vector<bool>& read() const { return read_; }
  // How many inputs of steps a value is.
  int ReadersOf(int value) const;
  // The shape of every value. Throws kConfig if they do not fit.
  std::vector<TShape> ShapesOf(const std::vector<TShape>& in) const;

  std::string TypeString() const override { return "_ElementwiseChain"; }
  std::string Description() const override {
    return "several operators in one pass over memory (created by the fusion pass)";
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
  std::vector<InplacePair> BackwardIdentityOption() const override;
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>& in_shape) const override;
  std::vector<ResourceRequest> BackwardResource(
      const std::vector<TShape>& in_shape) const override {
    return ForwardResource(in_shape);
  }
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 protected:
  void Check() override;

 private:
  void FindRead();

  const OperatorRegistry& registry_;
  std::vector<Step> steps_;
  int dropout_ = -1;
  std::vector<bool> read_;
};

}  // namespace mxtrain
