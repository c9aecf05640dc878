// SPDX-License-Identifier: Apache-2.0
#pragma once
// SimOtaLoss: the loss of YOLOX (Ge et al. 2021, arXiv 2107.08430) as in the authors' release
// 0.3.0, [N]. Inputs: maps of centres and the labels (operator/point_loss.h). Ignores the head
// gradient, as all losses.
//
// Which points are to find an object is a simplified optimal transport (SimOTA). Near an object is
// a point in its box or less than `center_radius` strides from its centre along both axes. Points
// that are near any object of the image are candidates of all; for an object a candidate costs
//   sum over classes of BCE(sqrt(p_class p_object), whether it is the class)
//     + overlap_cost * -log(u + 1e-8) + (in the box and at the centre ? 0 : 1e5),
// u the intersection over union of the proposed box with its own. An object gets as many of the
// cheapest candidates as the sum of its `candidates` largest u says, rounded down, at least one. A
// point that several objects want is of the one for which it costs least of all objects of the
// image. Points in an object that nothing is to be learnt of have no loss if they are of no other.
//
//   L = (objectness_weight sum BCE(p_object, whether the point has an object)
//        + sum over points with an object of (class_weight sum BCE(p_class, u or 0)
//          + box_weight (1 - IoU^2) + l1_weight |map - target|)) * N / max(points with an object,
//          1)
//
// over the points of the image. The l1 term is of the four numbers of the map itself; YOLOX adds it
// (l1_weight: 1) in its last epochs. Targets have no gradient.
//
// The number of points with an object is that of the whole batch, N images (or of a part of it, on
// several devices): the mean over the outputs is the loss of the authors. So, unlike with
// PointBoxLoss, the loss of an image depends on the others: one with many objects counts more.
#include "mxtrain/operator/point_loss.h"

namespace mxtrain {

struct SimOtaLossParam : Parameter<SimOtaLossParam> {
  TShape strides;
  int candidates;
  float center_radius, overlap_cost, box_weight, objectness_weight, class_weight, l1_weight,
      grad_scale;
  static void Declare(Fields<SimOtaLossParam>& f);
};

class SimOtaLossProperty final : public PointLossProperty<SimOtaLossParam> {
 public:
  std::string TypeString() const override { return "SimOtaLoss"; }
  std::string Description() const override {
    return "the loss of YOLOX, a detector without anchors, by simplified optimal transport";
  }
  int form() const override { return kCenters; }
};

}  // namespace mxtrain
