#pragma once
// Flatten: [N, ...] as [N, product of the rest]. The same bytes under another shape.
#include "mxtrain/operator/property.h"

namespace mxtrain {

class FlattenProperty final : public PropertyWithParam<NoParam> {
 public:
  std::string TypeString() const override { return "Flatten"; }
  std::string Description() const override { return "makes every sample a row: [N, ...] -> [N, product of the rest]"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out, std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad, const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardIdentityOption() const override { return {{0, 0}}; }
};

}  // namespace mxtrain
