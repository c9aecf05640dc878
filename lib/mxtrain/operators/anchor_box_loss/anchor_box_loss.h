// SPDX-License-Identifier: Apache-2.0
#pragma once
// AnchorBoxLoss: the loss of a detector with anchors (operator/anchors.h), [N], one for each image.
// Its arguments, then label (operator/labelled_objects.h). Ignores the head gradient, as all
// losses.
//
// - An anchor is to find the object that it overlaps most, the first of equal ones, if the
//   intersection over union is at least overlap_threshold.
// - For each object the anchor that overlaps it most, the first of equal ones, is to find it in any
//   case; for several such objects the last of them. An object that no anchor overlaps is not
//   learnt.
// - The other anchors are of the background; but nothing is learnt of those of whose area a share
//   of at least overlap_threshold is in an object that nothing is to be learnt of. In each image
//   those with the largest loss, the first of equal ones, are learnt: negative_ratio times as many
//   as are to find an object, rounded up, or all that there are.
//
//   L_i = N / max(P, 1) (sum cross-entropy of the scores + box_weight sum smooth L1 of the offsets)
//
// over the anchors of image i that are learnt, and those that are to find an object; P is how many
// those are in all N images, so the mean of the losses is the sum over the batch, divided by P.
// Smooth L1 is x^2 / 2 for |x| < 1, else |x| - 1/2, of the differences to the offsets of the object
// from the anchor over the variances. Targets have no gradient.
#include "mxtrain/operator/anchors.h"

namespace mxtrain {

struct AnchorBoxLossParam : AnchorFields, Parameter<AnchorBoxLossParam> {
  float overlap_threshold, negative_ratio, box_weight, grad_scale;
  static void Declare(Fields<AnchorBoxLossParam>& f);
};

class AnchorBoxLossProperty final : public PropertyWithParam<AnchorBoxLossParam> {
 public:
  static constexpr size_t kLabel = 3;  // the last argument

  std::string TypeString() const override { return "AnchorBoxLoss"; }
  std::string Description() const override {
    return "the loss of a detector with anchors, by overlaps and hard negatives";
  }
  std::vector<std::string> ListArguments() const override;
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>&,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return in_data;
  }
  bool HasGradient(int argument) const override {
    return argument == kAnchorScores || argument == kAnchorOffsets;
  }

 protected:
  void Check() override { param_.CheckAnchors(TypeString()); }
};

}  // namespace mxtrain
