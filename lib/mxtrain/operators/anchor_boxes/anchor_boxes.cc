// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/anchor_boxes/anchor_boxes.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool AnchorBoxesProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  TShape rows{TShape::kUnknown, TShape::kUnknown, TShape::kUnknown, kColumns};
  UnifyShape((*out)[0], &rows, TypeString(), "output");
  const int64_t columns = rows[1] == TShape::kUnknown ? rows[1] : rows[1] + 1;
  const AnchorShape shape = UnifyAnchors(TypeString(), {rows[0], rows[2], columns}, in);
  const int64_t classes = shape.columns == TShape::kUnknown ? shape.columns : shape.columns - 1;
  (*out)[0] = {shape.images, classes, shape.count, kColumns};
  return (*out)[0].known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(anchor_boxes, registry) {
  registry.AddProperty("AnchorBoxes", {},
                       [] { return std::make_unique<mxtrain::AnchorBoxesProperty>(); });
}
