// SPDX-License-Identifier: Apache-2.0
#pragma once
// RegionBoxes: the boxes that a net finds in regions of interest, one for each class and region
// (Girshick 2015, "Fast R-CNN", arXiv 1504.08083). Arguments:
//
//   rois     [N, R, 5]                [image, left, top, right, bottom] in pixels of the image as
//                                     the net reads it; a negative image is no region
//   scores   [N, R, classes + 1]      logits; the first is that of the background
//   offsets  [N, R, 4 (classes + 1)]  of the box of each class from the region
//                                     (operator/box_offsets.h), over the variances
//   data     [N, C, H, W]             the image, of which only the size matters
//
// Output [N, classes, R, 6] with rows of the class, its probability (a softmax over all classes and
// the background), left, top, right, bottom, which end at the edges of the image. What box_nms with
// id_index = 0 takes, the boxes of each class by themselves. A box is at most kMostAnchorGrowth
// times as wide and as high as its region. Rows of no region, and of boxes with a side shorter than
// least_side, are of -1. Without a gradient: it is zero; RegionLoss trains the net.
#include "mxtrain/operator/box_offsets.h"
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct RegionBoxesParam : Parameter<RegionBoxesParam> {
  std::vector<double> variances;
  float least_side;
  static void Declare(Fields<RegionBoxesParam>& f);
};

class RegionBoxesProperty final : public PropertyWithoutGradient<RegionBoxesParam> {
 public:
  static constexpr int64_t kColumns = 6;
  enum Argument : int { kRois, kScores, kOffsets, kData };

  std::string TypeString() const override { return "RegionBoxes"; }
  std::string Description() const override {
    return "the boxes that a net finds in regions of interest: class, score and corners";
  }
  std::vector<std::string> ListArguments() const override {
    return {"rois", "scores", "offsets", "data"};
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;

 protected:
  void Check() override { CheckVariances(param_.variances, TypeString()); }
};

}  // namespace mxtrain
