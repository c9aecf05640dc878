// SPDX-License-Identifier: Apache-2.0
#pragma once
// BlockGrad: the identity, but no gradient flows through it. A blocked head needs no head gradient.
#include "mxtrain/operator/property.h"

namespace mxtrain {

class BlockGradProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "BlockGrad"; }
  std::string Description() const override {
    return "the identity; stops the gradient (it is zero)";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferSameShape(*this, in, out);
  }
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {};
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
