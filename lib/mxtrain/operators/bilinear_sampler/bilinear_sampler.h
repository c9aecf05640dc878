// SPDX-License-Identifier: Apache-2.0
#pragma once
// BilinearSampler: data [N, C, H, W] read at the places that grid [N, 2, h, w] says, by bilinear
// interpolation; output [N, C, h, w]. The grid holds x, then y, from -1 (the first column or row)
// to 1 (the last one). Outside of the image the data are zero. (Jaderberg et al., "Spatial
// Transformer Networks", 2015.) Both inputs have gradients. A place that is NaN gives NaN.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct BilinearSamplerParam : Parameter<BilinearSamplerParam> {
  static void Declare(Fields<BilinearSamplerParam>& f) {
    f.Ignored("cudnn_off", "use an implementation other than cuDNN's");
  }
};

class BilinearSamplerProperty final : public PropertyWithParam<BilinearSamplerParam> {
 public:
  std::string TypeString() const override { return "BilinearSampler"; }
  std::string Description() const override {
    return "reads images at the places of a grid, by bilinear interpolation";
  }
  std::vector<std::string> ListArguments() const override { return {"data", "grid"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[0], in_data[1]};
  }
};

}  // namespace mxtrain
