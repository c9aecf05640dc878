// SPDX-License-Identifier: Apache-2.0
#pragma once
// Flatten: [N, ...] as [N, product of the rest]. The same bytes under another shape.
#include "mxtrain/operator/identity.h"

namespace mxtrain {

class FlattenProperty final : public ReshapingProperty<NoParam> {
 public:
  std::string TypeString() const override { return "Flatten"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override {
    return "makes every sample a row: [N, ...] -> [N, product of the rest]";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(flatten, Device, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<Device>("Flatten"));
}
