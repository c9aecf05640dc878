// SPDX-License-Identifier: Apache-2.0
#pragma once
// MultiBoxDetection: what a detector with anchors has found (Liu et al. 2016, "SSD", arXiv
// 1512.02325). Inputs:
//
//   cls_prob [N, classes, B]   probabilities; class 0 is the background
//   loc_pred [N, 4 B]          offsets of the boxes from the anchors (operator/box_offsets.h),
//   which
//                              are multiplied by the variances
//   anchor   [1, B, 4]         left, top, right, bottom
//
// Output [N, B, 6], rows of class, score, left, top, right, bottom. As MXNet 1.9:
//
// - an anchor takes part if the best of its classes beside the background has a probability of at
//   least `threshold`; the class is that less 1, the score the probability;
// - the rows of those are ordered by score, equal scores in the order of the anchors; without
//   suppression, which nms_threshold outside of (0, 1] is, all are in the order of the anchors;
// - the class of a row is -1 if a row before it that has a class, the same or any with
//   force_suppress, has an intersection over union with it of nms_threshold or more;
// - of more than nms_topk > 0 rows all from there on have class -1, and the rest of the row of as
//   many anchors that take part in the order of the anchors;
// - further rows are -1.
//
// Without a gradient: it is zero.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct MultiBoxDetectionParam : Parameter<MultiBoxDetectionParam> {
  bool clip, force_suppress;
  float threshold, nms_threshold;
  int background_id, nms_topk;
  std::vector<double> variances;
  static void Declare(Fields<MultiBoxDetectionParam>& f);

  bool Suppresses() const { return nms_threshold > 0 && nms_threshold <= 1; }
  // Of `boxes` rows, how many may have a class.
  int64_t Most(int64_t boxes) const {
    return Suppresses() && nms_topk > 0 && nms_topk < boxes ? nms_topk : boxes;
  }
};

class MultiBoxDetectionProperty final : public PropertyWithoutGradient<MultiBoxDetectionParam> {
 public:
  enum Argument { kClassProb, kOffsets, kAnchor };
  static constexpr int64_t kColumns = 6;

  std::string TypeString() const override { return "_contrib_MultiBoxDetection"; }
  std::string Description() const override {
    return "the boxes that a detector with anchors has found: class, score and corners";
  }
  std::vector<std::string> ListArguments() const override {
    return {"cls_prob", "loc_pred", "anchor"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
