// SPDX-License-Identifier: Apache-2.0
#pragma once
// MultiBoxTarget: what a detector with anchors is to learn (Liu et al. 2016, "SSD", arXiv
// 1512.02325). Inputs:
//
//   anchor   [1, B, 4]             left, top, right, bottom
//   label    [N, objects, 5...]    rows of class, left, top, right, bottom, and more that is not
//                                  read; an image's rows end before the first one of class -1
//   cls_pred [N, classes, B]       logits; class 0 is the background
//
// Outputs loc_target and loc_mask [N, 4 B], cls_target [N, B]. As MXNet 1.9:
//
// - anchors are matched with objects by their intersection over union, greedily
//   (operator/greedy_matching.h); what overlaps by 1e-6 or less is not matched;
// - of the other anchors those that overlap an object by more than overlap_threshold, if that is
//   positive, are to find the object that they overlap most;
// - cls_target of these is their object's class plus 1, loc_mask 1, and loc_target the offsets of
//   the object from the anchor (operator/box_offsets.h) over the variances;
// - the other anchors are of the background, 0; with negative_mining_ratio > 0 only those of them
//   that overlap no object by negative_mining_thresh or more and whose logits give the background
//   the lowest probability: up to negative_mining_ratio times as many as are to find an object, and
//   at least minimum_negative_samples;
// - what is left, and without mining all anchors of an image without objects, has ignore_label.
//
// MXNet's CPU kernel ignores minimum_negative_samples, and fails where fewer anchors than the ratio
// asks for may be of the background; here, as in its GPU kernel, the minimum holds, for images
// without objects too. Without a gradient: it is zero.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct MultiBoxTargetParam : Parameter<MultiBoxTargetParam> {
  float overlap_threshold, ignore_label, negative_mining_ratio, negative_mining_thresh;
  int minimum_negative_samples;
  std::vector<double> variances;
  static void Declare(Fields<MultiBoxTargetParam>& f);

  bool Mines() const { return negative_mining_ratio > 0; }
};

class MultiBoxTargetProperty final : public PropertyWithoutGradient<MultiBoxTargetParam> {
 public:
  enum Argument { kAnchor, kLabel, kClassPred };
  enum Output { kBoxTarget, kBoxMask, kClassTarget };
  static constexpr int64_t kLeastColumns = 5;  // of the label

  std::string TypeString() const override { return "_contrib_MultiBoxTarget"; }
  std::string Description() const override {
    return "the classes and offsets that the anchors of a detector are to learn";
  }
  std::vector<std::string> ListArguments() const override {
    return {"anchor", "label", "cls_pred"};
  }
  std::vector<std::string> ListOutputs() const override {
    return {"loc_target", "loc_mask", "cls_target"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
