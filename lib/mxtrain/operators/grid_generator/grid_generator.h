// SPDX-License-Identifier: Apache-2.0
#pragma once
// GridGenerator: a grid [N, 2, H, W] for BilinearSampler, x then y, from -1 at the first column or
// row to 1 at the last one. An axis of length 1 is treated as if it had length 2.
//   affine   data [N, 6]: theta [2, 3] by rows; the grid is theta (x, y, 1) for every (x, y) of
//            the regular grid of target_shape
//   warp     data [N, 2, H, W]: how many columns and rows away to read, positive to the right and
//            down; 0 gives the regular grid
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct GridGeneratorParam : Parameter<GridGeneratorParam> {
  enum TransformType { kAffine, kWarp };
  int transform_type;
  TShape target_shape;
  static void Declare(Fields<GridGeneratorParam>& f) {
    f.Add("transform_type", &GridGeneratorParam::transform_type)
        .Enum({{"affine", kAffine}, {"warp", kWarp}})
        .Required()
        .Help("affine: an affine map of a regular grid; warp: a distance for every place");
    f.Add("target_shape", &GridGeneratorParam::target_shape)
        .Default(TShape{0, 0})
        .Help("size (h, w) of the grid, required for affine; warp has that of the data");
  }
};

class GridGeneratorProperty final : public PropertyWithParam<GridGeneratorParam> {
 public:
  std::string TypeString() const override { return "GridGenerator"; }
  std::string Description() const override {
    return "the places at which BilinearSampler reads, from affine maps or distances";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return {out_grad[0]};
  }

 protected:
  void Check() override;
};

}  // namespace mxtrain
