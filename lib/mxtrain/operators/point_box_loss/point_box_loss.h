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
//   L = (sum |y - p|^focal_gamma BCE(y, p) + box_weight sum y (1 - GIoU)) / max(sum y, 1)
//
// over the points and classes of the image: the quality focal loss (Li et al. 2020, arXiv
// 2006.04388) and the generalized intersection over union (Rezatofighi et al. 2019, arXiv
// 1902.09630). Targets have no gradient. The loss of an image does not depend on the others of its
// batch.
#include "mxtrain/operator/point_loss.h"

namespace mxtrain {

struct PointBoxLossParam : Parameter<PointBoxLossParam> {
  TShape strides;
  int candidates;
  float score_power, overlap_power, focal_gamma, box_weight, grad_scale;
  static void Declare(Fields<PointBoxLossParam>& f);
};

class PointBoxLossProperty final : public PropertyWithParam<PointBoxLossParam> {
 public:
  static constexpr int kMostCandidates = 32;

  std::string TypeString() const override { return "PointBoxLoss"; }
  std::string Description() const override {
    return "the loss of a detector without anchors, by task-aligned assignment";
  }
  std::vector<std::string> ListArguments() const override {
    return PointLossArguments(param_.strides, kDistances);
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>*) const override {
    return InferPointLossShapes(param_.strides, kDistances, TypeString(), in, out);
  }
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>*) const override {
    return InferPointLossTypes(ListArguments(), TypeString(), in, out);
  }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return in_data;
  }
  bool HasGradient(int argument) const override { return argument < 2 * param_.strides.ndim(); }

 protected:
  void Check() override { CheckStrides(param_.strides, TypeString()); }
};

}  // namespace mxtrain
