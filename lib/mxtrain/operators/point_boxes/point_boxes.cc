// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/point_boxes/point_boxes.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool PointBoxesProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  const PointGridShape grid = UnifyPointMaps(param_.strides, TypeString(), in, param_.form);
  UnifyShape(TShape{grid.images, grid.points, kColumns}, &(*out)[0], TypeString(), "output");
  return (*out)[0].known() && grid.classes != TShape::kUnknown;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(point_boxes, registry) {
  registry.AddProperty("PointBoxes", {},
                       [] { return std::make_unique<mxtrain::PointBoxesProperty>(); });
}
