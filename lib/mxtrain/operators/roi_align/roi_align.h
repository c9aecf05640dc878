// SPDX-License-Identifier: Apache-2.0
#pragma once
// ROIAlign: each region of interest as a grid of means of bilinear samples (He et al., "Mask
// R-CNN", 2017). data [N, C, H, W]; rois [R, 5] with [image, x1, y1, x2, y2] in image coordinates;
// output [R, C, h, w].
//
// The region from x1 spatial_scale to x2 spatial_scale, likewise y, is divided into w x h cells. A
// cell is the mean of samples on a regular grid within it: sample_ratio^2 of them, or, if that is
// not positive, ceil(length of the cell) along each axis. A sample more than one element outside
// of the data is 0, one closer has the value at the edge. Without `aligned` a region has at least
// one element along each axis; with it, coordinates are half an element less, so that they refer to
// the centers of elements. rois have no gradient; invalid ones are treated as by ROIPooling.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct ROIAlignParam : Parameter<ROIAlignParam> {
  TShape pooled_size;
  float spatial_scale;
  int sample_ratio;
  bool position_sensitive, aligned;
  static void Declare(Fields<ROIAlignParam>& f);
};

class ROIAlignProperty final : public PropertyWithParam<ROIAlignParam> {
 public:
  std::string TypeString() const override { return "ROIAlign"; }
  std::string Description() const override {
    return "means of bilinear samples over a fixed grid of every region of interest";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "rois"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[1]};
  }
  bool HasGradient(int argument) const override { return argument == 0; }

 protected:
  void Check() override;
};

}  // namespace mxtrain
