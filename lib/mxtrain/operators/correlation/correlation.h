// SPDX-License-Identifier: Apache-2.0
#pragma once
// Correlation: how alike patches of data1 and data2 [N, C, H, W] are, for displacements of up to
// max_displacement cells (Dosovitskiy et al., "FlowNet", 2015). Both are padded with zeros. Output
// [N, D D, H', W'] with D = 2 floor(max_displacement / stride2) + 1: channel (p, o) compares the
// patch of kernel_size cells that begins at (y, x) stride1 + max_displacement of data1 with the one
// of data2 that lies (p, o) stride2 cells further, for displacements from -floor(...) on. The value
// is the mean over patch and channels of the products, or of the absolute differences.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct CorrelationParam : Parameter<CorrelationParam> {
  int kernel_size, max_displacement, stride1, stride2, pad_size;
  bool is_multiply;
  static void Declare(Fields<CorrelationParam>& f);
};

// The numbers of a correlation of images of a given shape.
struct MXTRAIN_API CorrelationGeometry {
  int64_t batch, channels, in[2], out[2];
  int64_t kernel, displacement, stride1, stride2, pad, radius;

  CorrelationGeometry(const CorrelationParam& param, const TShape& data);
  MXTRAIN_HD int64_t width() const { return 2 * radius + 1; }  // displacements along an axis
  MXTRAIN_HD int64_t cells() const { return in[0] * in[1]; }
  MXTRAIN_HD int64_t terms() const { return kernel * kernel * channels; }
};

class CorrelationProperty final : public PropertyWithParam<CorrelationParam> {
 public:
  std::string TypeString() const override { return "Correlation"; }
  std::string Description() const override {
    return "how alike patches of two images are, for each displacement";
  }
  std::vector<std::string> ListArguments() const override { return {"data1", "data2"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[0], in_data[1]};
  }
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
