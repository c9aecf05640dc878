// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/region_loss/region_loss.h"

#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/operator/region_scores.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void RegionLossParam::Declare(Fields<RegionLossParam>& f) {
  using P = RegionLossParam;
  f.Add("box_weight", &P::box_weight)
      .Default(1.0f)
      .Range(0, 1e6)
      .Help("weight of the boxes beside the scores");
  f.Add("grad_scale", &P::grad_scale).Default(1.0f).Help("factor of the gradient");
}

bool RegionLossProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  TShape &targets = (*in)[kTargets], &output = (*out)[0];
  RegionShape shape;
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    shape = UnifyRegions(TypeString(), shape, &(*in)[kScores], &(*in)[kOffsets]);
    TShape rows{shape.images, shape.regions, kTargetColumns};
    UnifyShape(targets, &rows, TypeString(), "targets");
    targets = rows;
    UnifyShape(TShape{rows[0]}, &output, TypeString(), "output");
    shape.images = targets[0] = output[0];
    shape.regions = targets[1];
  }
  return targets.known() && shape.columns != TShape::kUnknown;
}

bool RegionLossProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                   std::vector<DType>*) const {
  return InferLabelledTypes(ListArguments(), TypeString(), in, out);
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(region_loss, registry) {
  registry.AddProperty("RegionLoss", {},
                       [] { return std::make_unique<mxtrain::RegionLossProperty>(); });
}
