// SPDX-License-Identifier: Apache-2.0
#pragma once
// box_encode: what a detector with anchors is to learn, as offsets (operator/box_offsets.h).
//
//   samples [N, B]      above 0.5 for anchors that are to find an object
//   matches [N, B]      the number of that object, a row of refs
//   anchors [N, B, 4]   left, top, right, bottom
//   refs    [N, M, 4]   the objects of each image, likewise
//   means, stds [4]
//
// Outputs, both [N, B, 4]: (offset - mean) / std of the object from the anchor, and 1; both are 0
// for the other anchors, and where matches is not the number of an object. Without a gradient, as
// in MXNet: it is zero.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

class BoxEncodeProperty final : public PropertyWithoutGradient<NoParam> {
 public:
  enum Argument { kSamples, kMatches, kAnchors, kRefs, kMeans, kStds };
  enum Output { kTargets, kMasks };

  std::string TypeString() const override { return "_contrib_box_encode"; }
  std::string Description() const override {
    return "the offsets of objects from the anchors that are to find them";
  }
  std::vector<std::string> ListArguments() const override {
    return {"samples", "matches", "anchors", "refs", "means", "stds"};
  }
  std::vector<std::string> ListOutputs() const override { return {"output0", "output1"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kAnchors, kTargets}}; }
};

}  // namespace mxtrain
