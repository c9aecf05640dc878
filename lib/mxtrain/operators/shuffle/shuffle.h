// SPDX-License-Identifier: Apache-2.0
#pragma once
// shuffle: the rows (indices of the first axis) in a random order, another one in every step. The
// gradient goes back to where the rows were.
#include "mxtrain/operator/property.h"

namespace mxtrain {

class ShuffleProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "shuffle"; }
  std::string Description() const override { return "the rows of an array in a random order"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<ResourceRequest> ForwardResource(const std::vector<TShape>&) const override {
    return {{ResourceRequest::kRandom, 0}};
  }
};

}  // namespace mxtrain
