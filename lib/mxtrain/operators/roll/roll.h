// SPDX-License-Identifier: Apache-2.0
#pragma once
// roll: shifts elements along axes, with those that leave at one end entering at the other:
// output[(i + shift) % length] = data[i]. Without axes the flattened array is rolled.
#include <optional>

#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct RollParam : Parameter<RollParam> {
  TShape shift;
  std::optional<TShape> axis;
  static void Declare(Fields<RollParam>& f) {
    f.Add("shift", &RollParam::shift)
        .Required()
        .Help("how far, for all axes or for each; negative towards the first index");
    f.Add("axis", &RollParam::axis)
        .Default(std::nullopt)
        .Help("axes to roll, negative from the end; None: the array is flattened");
  }
};

class RollProperty final : public ViewProperty<RollParam> {
 public:
  std::string TypeString() const override { return "roll"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override { return "shifts elements along axes, around the end"; }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;

 protected:
  void Check() override;

 private:
  // How far every axis of `data` is rolled, within 0 .. its length - 1.
  std::vector<int64_t> ShiftsOf(const TShape& data) const;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(roll, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::RollParam, Device>("roll"));
}
