// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pad: adds elements before and after along every axis: a constant, the nearest element (edge), or
// the elements mirrored at the first or last one, without it (reflect). Of any rank and along any
// axes; MXNet's takes images of 4 and 5 axes and pads the axes after the second.
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

enum PadMode : int { kPadConstant, kPadEdge, kPadReflect };

struct PadParam : Parameter<PadParam> {
  int mode;
  std::vector<double> pad_width;
  double constant_value;
  static void Declare(Fields<PadParam>& f) {
    f.Add("mode", &PadParam::mode)
        .Enum({{"constant", kPadConstant}, {"edge", kPadEdge}, {"reflect", kPadReflect}})
        .Required()
        .Help("what is added: constant_value, the nearest element, or mirrored elements");
    f.Add("pad_width", &PadParam::pad_width)
        .Required()
        .Range(0)
        .Help(
            "for every axis the elements before and after it, (0, 0, 0, 0, top, bottom, left, "
            "right)");
    f.Add("constant_value", &PadParam::constant_value)
        .Default(0)
        .AnyNumber()
        .Help("value of the added elements in mode constant");
  }
};

class PadProperty final : public ViewProperty<PadParam> {
 public:
  std::string TypeString() const override { return "Pad"; }
  std::string Description() const override { return "adds elements before and after along axes"; }
  TShape OutShape(const std::vector<TShape>& in) const override;
  MoveList MovesOf(std::span<const TensorSpec> in, std::span<const TensorSpec> out) const override;
  bool IsIdentity() const override;

 protected:
  void Check() override;

 private:
  struct Width {
    int64_t before = 0, after = 0;
  };
  std::vector<Width> widths_;  // one per axis
};

}  // namespace mxtrain

MXTRAIN_KERNELS(pad, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::PadParam, Device>("Pad"));
}
