// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/box_decode/box_decode.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void BoxDecodeParam::Declare(Fields<BoxDecodeParam>& f) {
  using P = BoxDecodeParam;
  f.Add("std0", &P::std0).Default(1.0f).Help("factor of the first offset, of x");
  f.Add("std1", &P::std1).Default(1.0f).Help("factor of the second offset, of y");
  f.Add("std2", &P::std2).Default(1.0f).Help("factor of the third offset, of the width");
  f.Add("std3", &P::std3).Default(1.0f).Help("factor of the fourth offset, of the height");
  f.Add("clip", &P::clip)
      .Default(-1.0f)
      .Help("logarithms of width and height are at most this; not above 0: anything");
  DeclareBoxFormat(f, "format", &P::format,
                   "of the anchors: corner (left, top, right, bottom) or center (x, y, width, "
                   "height)",
                   kBoxCenter);
}

bool BoxDecodeProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                   std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &anchors = (*in)[kAnchors], &output = (*out)[0];
  TShape boxes{TShape::kUnknown, TShape::kUnknown, 4};
  UnifyShape(data, &boxes, TypeString(), "data");
  UnifyShape(output, &boxes, TypeString(), "output");
  TShape shared{1, boxes[1], 4};
  UnifyShape(anchors, &shared, TypeString(), "anchors");
  boxes[1] = shared[1];
  data = output = boxes;
  anchors = shared;
  return boxes.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(box_decode, registry) {
  registry.AddProperty("_contrib_box_decode", {"box_decode"},
                       [] { return std::make_unique<mxtrain::BoxDecodeProperty>(); });
}
