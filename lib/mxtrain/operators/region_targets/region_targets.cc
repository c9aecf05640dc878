// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/region_targets/region_targets.h"

#include "mxtrain/operator/labelled_objects.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void RegionTargetsParam::Declare(Fields<RegionTargetsParam>& f) {
  using P = RegionTargetsParam;
  f.Add("samples", &P::samples)
      .Default(512)
      .Range(1, 1 << 24)
      .Help("regions of an image that are learnt from");
  f.Add("foreground", &P::foreground)
      .Default(0.5f)
      .RangeAbove(0, 1)
      .Help("a region of at least this intersection over union with an object is to find it");
  f.Add("background", &P::background)
      .Default(0.5f)
      .Range(0, 1)
      .Help("a region of less than this with every object is of the background");
  f.Add("object_share", &P::object_share)
      .Default(0.25f)
      .Range(0, 1)
      .Help("at most this share of the sample is to find an object");
  DeclareVariances(f, &P::variances, "the offsets are divided by them");
}

void RegionTargetsProperty::Check() {
  CheckVariances(param_.variances, TypeString());
  if (param_.background > param_.foreground) {
    Throw(ErrorKind::kConfig, "{}: background = {} is above foreground = {}", TypeString(),
          param_.background, param_.foreground);
  }
}

bool RegionTargetsProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  TShape sample{TShape::kUnknown, param_.samples, kColumns};
  for (size_t i = 0; i < 2; ++i) UnifyShape((*out)[i], &sample, TypeString(), ListOutputs()[i]);
  TShape rois{sample[0], TShape::kUnknown, kColumns};
  UnifyShape((*in)[kRois], &rois, TypeString(), "rois");
  TShape label{rois[0], TShape::kUnknown, kObjectColumns};
  UnifyShape((*in)[kLabel], &label, TypeString(), "label");
  rois[0] = sample[0] = label[0];
  (*in)[kRois] = rois;
  (*in)[kLabel] = label;
  (*out)[kRegions] = (*out)[kTargets] = sample;
  return rois.known() && label.known();
}

bool RegionTargetsProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                      std::vector<DType>*) const {
  DType type = (*in)[kRois];
  if (type == DType::kUnknown) type = (*out)[kRegions];
  if (type == DType::kUnknown) return false;
  UnifyType(type, &(*in)[kRois], TypeString(), "rois");
  for (size_t i = 0; i < 2; ++i) UnifyType(type, &(*out)[i], TypeString(), ListOutputs()[i]);
  UnifyType(type == DType::kFloat64 ? type : DType::kFloat32, &(*in)[kLabel], TypeString(),
            "label");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(region_targets, registry) {
  registry.AddProperty("RegionTargets", {},
                       [] { return std::make_unique<mxtrain::RegionTargetsProperty>(); });
}
