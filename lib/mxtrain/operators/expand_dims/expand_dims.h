// SPDX-License-Identifier: Apache-2.0
#pragma once
// Inserts or removes axes of length one: expand_dims (axis: position in the output) and squeeze
// (axis: which; None: all of length one). The elements are not moved.
#include <optional>

#include "mxtrain/operator/identity.h"

namespace mxtrain {

struct ExpandDimsParam : Parameter<ExpandDimsParam> {
  int axis;
  static void Declare(Fields<ExpandDimsParam>& f) {
    f.Add("axis", &ExpandDimsParam::axis)
        .Required()
        .Help("position of the new axis in the output; negative counts from the end");
  }
};

class ExpandDimsProperty final : public ReshapingProperty<ExpandDimsParam> {
 public:
  std::string TypeString() const override { return "expand_dims"; }
  std::string Description() const override { return "inserts an axis of length one"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

struct SqueezeParam : Parameter<SqueezeParam> {
  std::optional<TShape> axis;
  static void Declare(Fields<SqueezeParam>& f) {
    f.Add("axis", &SqueezeParam::axis)
        .Default(std::nullopt)
        .Help("axes to remove, negative from the end; None: all of length 1");
  }
};

class SqueezeProperty final : public ReshapingProperty<SqueezeParam> {
 public:
  std::string TypeString() const override { return "squeeze"; }
  std::string Description() const override { return "removes axes of length one"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(expand_dims, Device, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<Device>("expand_dims"));
  registry.AddKernel(mxtrain::IdentityKernel<Device>("squeeze"));
}
