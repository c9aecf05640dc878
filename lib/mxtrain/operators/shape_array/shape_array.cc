// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/shape_array/shape_array.h"

MXTRAIN_OPERATOR(shape_array, registry) {
  using mxtrain::shape_array::ShapeArrayProperty;
  registry.AddProperty("shape_array", {},
                       [] { return std::make_unique<ShapeArrayProperty>(false); });
  registry.AddProperty("size_array", {}, [] { return std::make_unique<ShapeArrayProperty>(true); });
}
