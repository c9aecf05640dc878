// SPDX-License-Identifier: Apache-2.0
#pragma once
// BilinearResize2D: images [N, C, H, W] at another size by bilinear interpolation. The positions in
// the input are those of LinearTaps (operator/taps.h); without aligned corners, which is not
// MXNet's default, they are PyTorch's. The size along an axis, as `mode` says:
//   size          size times scale, rounded down, if the axis has a scale; else height or width.
//                 One of them must be given for each axis: MXNet's defaults, 1, make a single pixel
//   odd_scale     size times scale; of odd sizes (size - 1) times scale, plus 1
//   like          that of a second input, which is not read and has no gradient
//   to_even_down, to_even_up, to_odd_down, to_odd_up
//                 the next even or odd size
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct BilinearResizeParam : Parameter<BilinearResizeParam> {
  enum Mode { kSize, kOddScale, kLike, kToEvenDown, kToEvenUp, kToOddDown, kToOddUp };
  int height, width, mode;
  std::optional<float> scale_height, scale_width;
  bool align_corners;
  static void Declare(Fields<BilinearResizeParam>& f);
};

class BilinearResizeProperty final : public PropertyWithParam<BilinearResizeParam> {
 public:
  void Init(const Kwargs& kwargs) override;
  std::string TypeString() const override { return "BilinearResize2D"; }
  std::string Description() const override { return "resizes images by bilinear interpolation"; }
  std::vector<std::string> ListArguments() const override;
  bool HasGradient(int argument) const override { return argument == 0; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override;

 private:
  // The output size along axis 2 or 3 of data of this size, for modes other than like.
  int64_t Target(int axis, int64_t size) const;
};

}  // namespace mxtrain
