// SPDX-License-Identifier: Apache-2.0
#pragma once
// box_decode: the boxes (left, top, right, bottom) that offsets from anchors
// (operator/box_offsets.h) mean. data [N, B, 4]: offsets, which are multiplied by std0 .. std3;
// anchors [1, B, 4]; output [N, B, 4]. With clip > 0 the last two offsets, logarithms, are at most
// clip. Without a gradient, as in MXNet: it is zero.
#include "mxtrain/operator/boxes.h"
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct BoxDecodeParam : Parameter<BoxDecodeParam> {
  float std0, std1, std2, std3, clip;
  int format;
  static void Declare(Fields<BoxDecodeParam>& f);
};

class BoxDecodeProperty final : public PropertyWithoutGradient<BoxDecodeParam> {
 public:
  enum Argument { kData, kAnchors };

  std::string TypeString() const override { return "_contrib_box_decode"; }
  std::string Description() const override { return "boxes from offsets from anchors"; }
  std::vector<std::string> ListArguments() const override { return {"data", "anchors"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{kData, 0}}; }
};

}  // namespace mxtrain
