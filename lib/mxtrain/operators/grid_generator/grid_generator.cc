// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/grid_generator/grid_generator.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

void GridGeneratorProperty::Check() {
  const TShape& size = param_.target_shape;
  if (param_.transform_type == GridGeneratorParam::kWarp) return;
  if (size.ndim() != 2 || size[0] < 1 || size[1] < 1) {
    Throw(ErrorKind::kConfig,
          "GridGenerator: target_shape = {}: affine needs two positive numbers, (h, w)",
          size.ToTuple());
  }
}

bool GridGeneratorProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                       std::vector<TShape>*) const {
  constexpr int64_t kUnknown = TShape::kUnknown;
  TShape &data = (*in)[0], &grid = (*out)[0];
  const bool warp = param_.transform_type == GridGeneratorParam::kWarp;
  TShape expected = warp ? TShape{kUnknown, 2, kUnknown, kUnknown} : TShape{kUnknown, 6};
  UnifyShape(data, &expected, TypeString(), "data");
  data = expected;
  UnifyShape(warp ? data : TShape{data[0], 2, param_.target_shape[0], param_.target_shape[1]},
             &grid, TypeString(), "output");
  if (warp) {
    data = grid;
  } else {
    data[0] = grid[0];
  }
  return data.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(grid_generator, registry) {
  registry.AddProperty("GridGenerator", {},
                       [] { return std::make_unique<mxtrain::GridGeneratorProperty>(); });
}
