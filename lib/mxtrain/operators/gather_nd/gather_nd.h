// SPDX-License-Identifier: Apache-2.0
#pragma once
// gather_nd(data, indices): elements, or sub-arrays, at points,
//   output[i..., j...] = data[indices[0, i...], ..., indices[M - 1, i...], j...]
// scatter_nd(data, indices): an array of the given shape that is zero except at points,
//   output[indices[0, i...], ..., indices[M - 1, i...], j...] = data[i..., j...]
// where the last of the elements for one point is kept. M, the length of the first axis of indices,
// is the number of leading axes that a point gives. Indices may be of any numeric type, and
// fractions are truncated; negative ones count from the end. An index out of range is an error
// (kData) on the CPU; a GPU, which cannot throw, takes the nearest one in range.
//
// The gradient of gather_nd is the sum over equal points, in their order; that of scatter_nd is
// gather_nd of the head gradient, also for elements that were not kept. Indices have none.
#include "mxtrain/operator/gather_property.h"

namespace mxtrain {

class GatherNdProperty final : public GatherProperty<NoParam> {
 public:
  std::string TypeString() const override { return "gather_nd"; }
  std::string Description() const override { return "elements at points of the leading axes"; }
  std::vector<std::string> ListArguments() const override { return {"data", "indices"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

struct ScatterNdParam : Parameter<ScatterNdParam> {
  TShape shape;
  static void Declare(Fields<ScatterNdParam>& f) {
    f.Add("shape", &ScatterNdParam::shape).Required().Help("shape of the output");
  }
};

class ScatterNdProperty final : public GatherProperty<ScatterNdParam> {
 public:
  std::string TypeString() const override { return "scatter_nd"; }
  std::string Description() const override { return "zeros except at points"; }
  std::vector<std::string> ListArguments() const override { return {"data", "indices"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  void Check() override;
};

}  // namespace mxtrain
