// SPDX-License-Identifier: Apache-2.0
#pragma once
// ElementWiseSum: the sum of any number of arrays of one shape. The gradient of every input is the
// head gradient, byte for byte.
#include "mxtrain/operator/most_arguments.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ElementWiseSumParam : Parameter<ElementWiseSumParam> {
  int num_args;
  static void Declare(Fields<ElementWiseSumParam>& f) {
    f.Add("num_args", &ElementWiseSumParam::num_args)
        .Required()
        .Range(1, kMostArguments)
        .Help("number of inputs");
  }
};

class ElementWiseSumProperty final : public PropertyWithParam<ElementWiseSumParam> {
 public:
  std::string TypeString() const override { return "ElementWiseSum"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override { return "adds inputs of one shape"; }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override {
    return NumberedNames("arg", param_.num_args);
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  Elementwise elementwise() const override { return Elementwise::kZeroToZero; }
  // The first input is the one that a kernel may overwrite.
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return ToEveryInput(); }
  std::vector<InplacePair> ForwardIdentityOption() const override {
    return param_.num_args == 1 ? std::vector<InplacePair>{{0, 0}} : std::vector<InplacePair>{};
  }
  std::vector<InplacePair> BackwardIdentityOption() const override { return ToEveryInput(); }

 private:
  std::vector<InplacePair> ToEveryInput() const {
    std::vector<InplacePair> pairs;
    for (int i = 0; i < param_.num_args; ++i) pairs.push_back({0, i});
    return pairs;
  }
};

}  // namespace mxtrain
