// SPDX-License-Identifier: Apache-2.0
#pragma once
// PyramidProposals: the regions of each image in which a region proposal network over a feature
// pyramid (operator/pyramid_anchors.h) expects objects of any class. Output [N, count, 5] with rows
// [image, left, top, right, bottom] in pixels of the image as the net reads it, the best first,
// then rows of -1: what ROIAlign reads as [-1, 5].
//
// Of each level the `candidates` anchors with the best scores, the first of equal ones, give boxes,
// which end at the edges of the image; a box grows to at most kMostAnchorGrowth times its anchor.
// Those with a side shorter than least_side are dropped. In the order of their scores each box of a
// level suppresses the later ones of that level with which it has an intersection over union above
// `overlap`. What is left of all levels is sorted by score, and the first `count` are the output.
// Regions are float32, of maps of float64 float64. Without a gradient: it is zero;
// PyramidProposalLoss trains the maps.
#include "mxtrain/operator/no_gradient.h"
#include "mxtrain/operator/pyramid_anchors.h"

namespace mxtrain {

struct PyramidProposalsParam : PyramidFields, Parameter<PyramidProposalsParam> {
  int candidates, count;
  float overlap, least_side;
  static void Declare(Fields<PyramidProposalsParam>& f);
};

class PyramidProposalsProperty final : public PropertyWithoutGradient<PyramidProposalsParam> {
 public:
  static constexpr int64_t kColumns = 5;

  std::string TypeString() const override { return "PyramidProposals"; }
  std::string Description() const override {
    return "the regions that a feature pyramid proposes for objects of any class";
  }
  std::vector<std::string> ListArguments() const override { return param_.MapNames(); }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;

 protected:
  void Check() override { param_.CheckPyramid(TypeString()); }
};

}  // namespace mxtrain
