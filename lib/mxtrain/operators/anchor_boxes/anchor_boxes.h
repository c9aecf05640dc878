// SPDX-License-Identifier: Apache-2.0
#pragma once
// AnchorBoxes: the boxes that a detector with anchors (operator/anchors.h) proposes, one for each
// class and anchor: output [N, classes, B, 6] with rows of the class, its probability (a softmax
// over all classes and the background), left, top, right, bottom, which end at the edges of the
// image. What box_nms with id_index = 0 takes, the boxes of each class by themselves. A box is at
// most kMostAnchorGrowth times as wide and as high as its anchor. Without a gradient: it is zero;
// AnchorBoxLoss trains the net.
#include "mxtrain/operator/anchors.h"
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct AnchorBoxesParam : AnchorFields, Parameter<AnchorBoxesParam> {
  static void Declare(Fields<AnchorBoxesParam>& f) { DeclareAnchors(f); }
};

class AnchorBoxesProperty final : public PropertyWithoutGradient<AnchorBoxesParam> {
 public:
  static constexpr int64_t kColumns = 6;

  std::string TypeString() const override { return "AnchorBoxes"; }
  std::string Description() const override {
    return "the boxes that a detector with anchors proposes: class, score and corners";
  }
  std::vector<std::string> ListArguments() const override { return AnchorArgumentNames(); }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override { param_.CheckAnchors(TypeString()); }
};

}  // namespace mxtrain
