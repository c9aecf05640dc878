// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/roi_align/roi_align.h"

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

void ROIAlignParam::Declare(Fields<ROIAlignParam>& f) {
  using P = ROIAlignParam;
  f.Add("pooled_size", &P::pooled_size).Required().Help("grid size in cells, (h, w)");
  f.Add("spatial_scale", &P::spatial_scale)
      .Required()
      .RangeAbove(0, 1)
      .Help("size of the data relative to the image");
  f.Add("sample_ratio", &P::sample_ratio)
      .Default(-1)
      .Range(-1, 10000)
      .Help("samples of a cell along each axis; -1 or 0: about one per element of the data");
  f.Add("position_sensitive", &P::position_sensitive)
      .Default(false)
      .Help("a group of channels for every cell; not supported");
  f.Add("aligned", &P::aligned).Default(false).Help("coordinates refer to the centers of elements");
}

void ROIAlignProperty::Check() {
  const TShape& size = param_.pooled_size;
  if (size.ndim() != 2 || size[0] < 1 || size[1] < 1) {
    Throw(ErrorKind::kConfig, "{}: pooled_size = {}: expected two positive numbers, (h, w)",
          TypeString(), size.ToTuple());
  }
  if (param_.position_sensitive) {
    Throw(ErrorKind::kConfig,
          "{}: position_sensitive = True is not supported; use False, or slice the channels of "
          "the output",
          TypeString());
  }
}

bool ROIAlignProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                  std::vector<TShape>*) const {
  TShape &data = (*in)[0], &rois = (*in)[1], &output = (*out)[0];
  UnifyImages(&data, TypeString(), "data");
  TShape expected{TShape::kUnknown, 5};
  UnifyShape(rois, &expected, TypeString(), "rois");
  rois = expected;
  UnifyShape(TShape{rois[0], data[1], param_.pooled_size[0], param_.pooled_size[1]}, &output,
             TypeString(), "output");
  rois[0] = output[0];
  data[1] = output[1];
  return data.known() && rois.known();
}

bool ROIAlignProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                 std::vector<DType>*) const {
  DType& data = (*in)[0];
  if (data == DType::kUnknown) data = (*out)[0];
  if (data == DType::kUnknown) return false;
  UnifyType(data, &(*out)[0], TypeString(), "output");
  // Narrow types cannot represent coordinates of an image.
  UnifyType(data == DType::kFloat64 ? data : DType::kFloat32, &(*in)[1], TypeString(), "rois");
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(roi_align, registry) {
  registry.AddProperty("ROIAlign", {"_contrib_ROIAlign"},
                       [] { return std::make_unique<mxtrain::ROIAlignProperty>(); });
}
