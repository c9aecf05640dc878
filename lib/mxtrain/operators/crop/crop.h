// SPDX-License-Identifier: Apache-2.0
#pragma once
// Crop: a window of images [N, C, H, W], of size h_w, or with two inputs of the second's height and
// width. It begins at `offset`, or is in the middle with center_crop. The gradient outside of it
// and of the second input is zero.
#include "mxtrain/operator/view_operator.h"

namespace mxtrain {

struct CropParam : Parameter<CropParam> {
  int num_args;
  TShape offset, h_w;
  bool center_crop;
  static void Declare(Fields<CropParam>& f) {
    f.Add("num_args", &CropParam::num_args)
        .Required()
        .Range(1, 2)
        .Help("number of inputs; the second gives the size");
    f.Add("offset", &CropParam::offset).Default({0, 0}).Help("first row and column, (y, x)");
    f.Add("h_w", &CropParam::h_w).Default({0, 0}).Help("size, (h, w), with one input");
    f.Add("center_crop", &CropParam::center_crop)
        .Default(false)
        .Help("take the middle; offset is not used");
  }
};

class CropProperty final : public RangesProperty<CropParam> {
 public:
  std::string TypeString() const override { return "Crop"; }
  std::string Description() const override { return "extracts a window of images"; }
  std::string NumArgsKey() const override { return "num_args"; }
  std::vector<std::string> ListArguments() const override;
  std::vector<AxisRange> RangesOf(const std::vector<TShape>& in) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain

MXTRAIN_KERNELS(crop, Device, registry) {
  registry.AddKernel(mxtrain::ViewKernel<mxtrain::CropParam, Device>("Crop"));
}
