// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/bilinear_sampler/bilinear_sampler.h"

#include "mxtrain/operator/images.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool BilinearSamplerProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                         std::vector<TShape>*) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  TShape &data = (*in)[0], &grid = (*in)[1], &output = (*out)[0];
  UnifyImages(&data, TypeString(), "data");
  TShape expected{data[0], 2, kUnknown, kUnknown};
  UnifyShape(grid, &expected, TypeString(), "grid");
  grid = expected;
  UnifyShape(TShape{grid[0], data[1], grid[2], grid[3]}, &output, TypeString(), "output");
  data[0] = grid[0] = output[0];
  data[1] = output[1];
  grid[2] = output[2];
  grid[3] = output[3];
  return data.known() && grid.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(bilinear_sampler, registry) {
  registry.AddProperty("BilinearSampler", {},
                       [] { return std::make_unique<mxtrain::BilinearSamplerProperty>(); });
}
