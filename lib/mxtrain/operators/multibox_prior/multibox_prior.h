// SPDX-License-Identifier: Apache-2.0
#pragma once
// MultiBoxPrior: the anchors of a map of features (Liu et al. 2016, "SSD", arXiv 1512.02325). Of
// data [N, C, H, W] only H and W are read; output [1, H W (sizes + ratios - 1), 4] with the corners
// left, top, right, bottom in shares of the image, cell by cell in rows. The center of the cell
// (y, x) is ((y + offsets[0]) steps[0], (x + offsets[1]) steps[1]). There are anchors of each size
// with the first ratio, then of the first size with each further ratio, as MXNet 1.9 has them:
//
//   width = size sqrt(ratio) H / W,  height = size / sqrt(ratio)
//
// so that an anchor of ratio 1 is square in a map whose cells are. Without a gradient: it is zero.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct MultiBoxPriorParam : Parameter<MultiBoxPriorParam> {
  std::vector<double> sizes, ratios, steps, offsets;
  bool clip;
  static void Declare(Fields<MultiBoxPriorParam>& f);

  int64_t AnchorsPerCell() const { return static_cast<int64_t>(sizes.size() + ratios.size()) - 1; }
};

class MultiBoxPriorProperty final : public PropertyWithoutGradient<MultiBoxPriorParam> {
 public:
  static constexpr int kHeight = 2, kWidth = 3;  // axes of the data

  std::string TypeString() const override { return "_contrib_MultiBoxPrior"; }
  std::string Description() const override {
    return "anchors of several sizes and ratios around each cell of a map";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
