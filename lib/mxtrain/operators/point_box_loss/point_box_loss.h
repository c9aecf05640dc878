// SPDX-License-Identifier: Apache-2.0
#pragma once
// PointBoxLoss: the loss of a detector without anchors (operator/point_grid.h), [N], one for each
// image. Inputs: its maps of distances and the labels (operator/point_loss.h). Ignores the head
// gradient, as all losses.
//
// Which points are to find an object depends on what the net says (task-aligned assignment, Feng et
// al. 2021, "TOOD", arXiv 2108.07755): candidates are the points in its box, or within half a
// stride of its centre; of those the `candidates` best by
//   t = p^score_power u^overlap_power,
// p the score of its class and u the intersection over union of the proposed box with its own. A
// point that several objects want is of the one with the largest u. The target of the score is
//   y = t / max t * max u
// over the object's points; of other classes, and of other points, it is 0. Points in an object
// that nothing is to be learnt of have no loss if they are of no other.
//
//   L = (sum |y - p|^focal_gamma BCE(y, p) + box_weight sum y (1 - GIoU)
//        + distribution_weight sum y DFL) / max(sum y, 1)
//
// over the points and classes of the image: the quality focal loss (Li et al. 2020, arXiv
// 2006.04388) and the generalized intersection over union (Rezatofighi et al. 2019, arXiv
// 1902.09630). DFL, with `bins` alone, is the distribution focal loss (Li et al. 2020, equation 6),
// of a side of the object at a distance d of 0 to bins - 1.01 strides, i <= d < i + 1,
//   -(i + 1 - d) log S_i - (d - i) log S_(i + 1),
// S_i the probability of i strides, as a mean over the four sides. Targets have no gradient. The
// loss of an image does not depend on the others of its batch.
#include "mxtrain/operator/point_loss.h"

namespace mxtrain {

struct PointBoxLossParam : Parameter<PointBoxLossParam> {
  TShape strides;
  int candidates, bins;
  float score_power, overlap_power, focal_gamma, box_weight, distribution_weight, grad_scale;
  static void Declare(Fields<PointBoxLossParam>& f);
};

class PointBoxLossProperty final : public PointLossProperty<PointBoxLossParam> {
 public:
  std::string TypeString() const override { return "PointBoxLoss"; }
  std::string Description() const override {
    return "the loss of a detector without anchors, by task-aligned assignment";
  }
  int form() const override { return FormOfBins(param_.bins, TypeString()); }
  int64_t bins() const override { return std::max(param_.bins, 1); }

 protected:
  void Check() override {
    PointLossProperty::Check();
    FormOfBins(param_.bins, TypeString());
  }
};

}  // namespace mxtrain
