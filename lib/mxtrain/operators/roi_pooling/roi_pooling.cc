// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/roi_pooling/roi_pooling.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void ROIPoolingProperty::Check() {
  const TShape& size = param_.pooled_size;
  if (size.ndim() != 2 || size[0] < 1 || size[1] < 1) {
    Throw(ErrorKind::kConfig, "ROIPooling: pooled_size = {}: expected two positive numbers, (h, w)",
          size.ToTuple());
  }
  if (!(param_.spatial_scale > 0))
    Throw(ErrorKind::kConfig,
          "ROIPooling: spatial_scale = 0: expected a number above 0 and at most 1");
}

bool ROIPoolingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                    std::vector<TShape>*) const {
  TShape& data = (*in)[0];
  TShape& rois = (*in)[1];
  constexpr int64_t kUnknown = TShape::kUnknown;
  UnifyShape(TShape::OfRank(4), &data, TypeString(), "data [N, C, H, W]");
  UnifyShape(TShape{kUnknown, 5}, &rois, TypeString(), "rois [R, 5]");
  for (TShape& shape : *out) {
    UnifyShape(TShape{rois[0], data[1], param_.pooled_size[0], param_.pooled_size[1]}, &shape,
               TypeString(), "output");
    UnifyShape(TShape{shape[0], 5}, &rois, TypeString(), "rois");
    UnifyShape(TShape{kUnknown, shape[1], kUnknown, kUnknown}, &data, TypeString(), "data");
  }
  return data.known() && rois.known();
}

bool ROIPoolingProperty::InferType(std::vector<DType>* in, std::vector<DType>* out,
                                   std::vector<DType>*) const {
  DType& data = (*in)[0];
  if (data == DType::kUnknown) data = (*out)[0];
  if (data == DType::kUnknown) return false;
  (*out)[0] = data;
  (*out)[1] = DType::kInt32;
  // Narrow types cannot represent coordinates of an image.
  const DType wanted = data == DType::kFloat64 ? data : DType::kFloat32;
  DType& rois = (*in)[1];
  if (rois == DType::kUnknown) rois = wanted;
  if (rois != wanted)
    Throw(ErrorKind::kConfig, "ROIPooling: rois have type {}, but {} was expected; insert a Cast",
          NameOf(rois), NameOf(wanted));
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(roi_pooling, registry) {
  registry.AddProperty("ROIPooling", {},
                       [] { return std::make_unique<mxtrain::ROIPoolingProperty>(); });
}
