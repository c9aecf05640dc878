// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reshape: the same bytes under another shape. Codes of `shape`: k > 0 that length; 0 the input's
// own; -1 inferred (once); -2 all remaining axes; -3 the product of the next two; -4 a b splits the
// next axis into a and b, one of which may be -1. `reverse` matches both shapes from the right. Old
// files have target_shape (a 0 is inferred) and keep_highest instead.
#include "mxtrain/operator/identity.h"

namespace mxtrain {

struct ReshapeParam : Parameter<ReshapeParam> {
  TShape shape, target_shape;  // as tuples of codes
  bool reverse, keep_highest;
  static void Declare(Fields<ReshapeParam>& f) {
    f.Add("shape", &ReshapeParam::shape)
        .Default(TShape(std::span<const int64_t>()))
        .Help("the new shape, with the codes 0, -1, -2, -3, -4");
    f.Add("reverse", &ReshapeParam::reverse).Default(false).Help("match the codes from the right");
    f.Add("target_shape", &ReshapeParam::target_shape)
        .Default(TShape(std::span<const int64_t>()))
        .Help("deprecated, used if shape is empty: one 0 is inferred");
    f.Add("keep_highest", &ReshapeParam::keep_highest)
        .Default(false)
        .Help("deprecated: keep the first axis");
  }
};

class ReshapeProperty final : public ReshapingProperty<ReshapeParam> {
 public:
  std::string TypeString() const override { return "Reshape"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  std::string Description() const override { return "changes the shape of its input"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;

 private:
  std::vector<int64_t> codes_;  // of shape, or of target_shape in the codes of shape; as written
  bool reverse_ = false;
};

// _reshape_to: the shape itself, without codes, for the graphs of composites.
struct ReshapeToParam : Parameter<ReshapeToParam> {
  TShape shape;
  static void Declare(Fields<ReshapeToParam>& f) {
    f.Add("shape", &ReshapeToParam::shape).Required().Help("the new shape");
  }
};
class ReshapeToProperty final : public ReshapingProperty<ReshapeToParam> {
 public:
  std::string TypeString() const override { return "_reshape_to"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kFollows}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

// The result of applying `codes` to `data`, which has known rank; unknown lengths propagate. Throws
// kConfig.
struct Reshaped {
  TShape shape;
  // Axes of the input and of the result whose lengths are equal by code 0 or -2.
  std::vector<std::pair<int, int>> same;
};
Reshaped ApplyReshape(const TShape& data, std::vector<int64_t> codes, bool reverse);

}  // namespace mxtrain

MXTRAIN_KERNELS(reshape, Device, registry) {
  registry.AddKernel(mxtrain::IdentityKernel<Device>("Reshape"));
  registry.AddKernel(mxtrain::IdentityKernel<Device>("_reshape_to"));
}
