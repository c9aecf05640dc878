// SPDX-License-Identifier: Apache-2.0
#pragma once
// ROIPooling: max pooling of each region of interest to a fixed grid (Girshick, "Fast R-CNN",
// 2015). data [N, C, H, W]; rois [R, 5] with [image, x1, y1, x2, y2] in image coordinates; the data
// are the image scaled by spatial_scale; output [R, C, h, w]. Hidden output maxidx: place of the
// maximum in its plane, -1 for an empty cell, whose value is 0. The maximum of a cell with a NaN is
// NaN. rois have no gradient. regions.h says what invalid regions are; one without an image gives 0
// and has no gradient.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ROIPoolingParam : Parameter<ROIPoolingParam> {
  TShape pooled_size;
  float spatial_scale;
  static void Declare(Fields<ROIPoolingParam>& f) {
    f.Add("pooled_size", &ROIPoolingParam::pooled_size)
        .Required()
        .Help("grid size in cells, (h, w)");
    f.Add("spatial_scale", &ROIPoolingParam::spatial_scale)
        .Required()
        .Range(0, 1)
        .Help("size of the data relative to the image");
  }
};

class ROIPoolingProperty final : public PropertyWithParam<ROIPoolingParam> {
 public:
  std::string TypeString() const override { return "ROIPooling"; }
  std::string Description() const override { return "pools regions of interest to a fixed grid"; }
  std::vector<std::string> ListArguments() const override { return {"data", "rois"}; }
  std::vector<std::string> ListOutputs() const override { return {"output", "maxidx"}; }
  int NumVisibleOutputs() const override { return 1; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>& out_data) const override {
    return {out_grad[0], in_data[1], out_data[1]};
  }
  bool HasGradient(int argument) const override { return argument == 0; }

 protected:
  void Check() override;
};

}  // namespace mxtrain
