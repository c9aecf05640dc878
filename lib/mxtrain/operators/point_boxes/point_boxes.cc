// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/point_boxes/point_boxes.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void PointBoxesProperty::Check() {
  CheckStrides(param_.strides, TypeString());
  if (FormOfBins(param_.bins, TypeString()) == kDistributions && param_.form == kCenters)
    Throw(ErrorKind::kConfig, "PointBoxes: bins = {} is for form: distances", param_.bins);
}

bool PointBoxesProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  const PointGridShape grid =
      UnifyPointMaps(param_.strides, TypeString(), in, param_.Form(), std::max(param_.bins, 1));
  UnifyShape(TShape{grid.images, grid.points, kColumns}, &(*out)[0], TypeString(), "output");
  return (*out)[0].known() && grid.classes != TShape::kUnknown;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(point_boxes, registry) {
  registry.AddProperty("PointBoxes", {},
                       [] { return std::make_unique<mxtrain::PointBoxesProperty>(); });
}
