// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/region_boxes/region_boxes.h"

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/region_scores.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void RegionBoxesParam::Declare(Fields<RegionBoxesParam>& f) {
  using P = RegionBoxesParam;
  DeclareVariances(f, &P::variances, "factors of the offsets");
  f.Add("least_side", &P::least_side)
      .Default(0.01f)
      .Range(0)
      .Help("boxes with a shorter side are dropped, in pixels");
}

bool RegionBoxesProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                     std::vector<TShape>*) const {
  UnifyImages(&(*in)[kData], TypeString(), "data");
  TShape rows{(*in)[kData][0], TShape::kUnknown, TShape::kUnknown, kColumns};
  UnifyShape((*out)[0], &rows, TypeString(), "output");
  RegionShape shape{rows[0], rows[2], rows[1] == TShape::kUnknown ? rows[1] : rows[1] + 1};
  // Twice: what a later array says holds for the earlier ones.
  for (int pass = 0; pass < 2; ++pass) {
    shape = UnifyRegions(TypeString(), shape, &(*in)[kScores], &(*in)[kOffsets]);
    TShape rois{shape.images, shape.regions, 5};
    UnifyShape((*in)[kRois], &rois, TypeString(), "rois");
    (*in)[kRois] = rois;
    shape.images = (*in)[kData][0] = rois[0];
    shape.regions = rois[1];
  }
  const int64_t classes = shape.columns == TShape::kUnknown ? shape.columns : shape.columns - 1;
  (*out)[0] = {shape.images, classes, shape.regions, kColumns};
  return (*out)[0].known() && (*in)[kData].known();
}

bool RegionBoxesProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                    std::vector<DType>*) const {
  DType type = (*in)[kScores];
  if (type == DType::kUnknown) type = (*in)[kOffsets];
  if (type == DType::kUnknown) type = (*in)[kRois];
  if (type == DType::kUnknown) return false;
  UnifyType(type, &(*in)[kScores], TypeString(), "scores");
  UnifyType(type, &(*in)[kOffsets], TypeString(), "offsets");
  // Narrow types cannot represent coordinates of an image.
  const DType wide = type == DType::kFloat64 ? type : DType::kFloat32;
  UnifyType(wide, &(*in)[kRois], TypeString(), "rois");
  UnifyType(wide, &(*out)[0], TypeString(), "output");
  if ((*in)[kData] == DType::kUnknown) (*in)[kData] = type;  // only its shape is read
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(region_boxes, registry) {
  registry.AddProperty("RegionBoxes", {},
                       [] { return std::make_unique<mxtrain::RegionBoxesProperty>(); });
}
