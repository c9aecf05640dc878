// SPDX-License-Identifier: Apache-2.0
#pragma once
// image_normalize: converts decoded images, data [N, H, W, C] of uint8 with C from 1 to 4, to net
// inputs, output [N, C, H, W] of float32 or `dtype`: (data / 255 - mean) / std per channel, rounded
// once to float32 (base/pixel_levels.h), then to dtype. This is `normalize` of the input pipeline,
// for a device; `image.to_tensor` and `image.normalize` of MXNet in one. The data have no gradient.
#include "mxtrain/base/pixel_levels.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ImageNormalizeParam : Parameter<ImageNormalizeParam>, PixelNormalization {
  DType dtype = DType::kFloat32;
  static void Declare(Fields<ImageNormalizeParam>& f) {
    f.Add("mean", &ImageNormalizeParam::mean)
        .Default({0})
        .Help("subtracted from data / 255: one number, or one per channel");
    f.Add("std", &ImageNormalizeParam::std)
        .Default({1})
        .Help("divides the difference: one number, or one per channel");
    f.Add("dtype", &ImageNormalizeParam::dtype)
        .Default(DType::kFloat32)
        .Help("type of the output: float32, float16 or bfloat16");
  }
};

class ImageNormalizeProperty final : public PropertyWithParam<ImageNormalizeParam> {
 public:
  std::string TypeString() const override { return "image_normalize"; }
  std::string Description() const override {
    return "converts 8-bit pixels, channels last: (data / 255 - mean) / std";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  bool HasGradient(int) const override { return false; }
};

}  // namespace mxtrain
