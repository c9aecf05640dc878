// SPDX-License-Identifier: Apache-2.0
#pragma once
// batch_dot: one matrix product for every index of the leading axes: [B.., m, k] x [B.., k, n] ->
// [B.., m, n]; with transpose_a the left matrices are [k, m], with transpose_b the right ones [n,
// k].
#include "mxtrain/operator/property.h"
#include "mxtrain/operators/dot/products.h"

namespace mxtrain::dot {

struct BatchDotParam : Parameter<BatchDotParam> {
  bool transpose_a = false, transpose_b = false;
  static void Declare(Fields<BatchDotParam>& f) {
    f.Add("transpose_a", &BatchDotParam::transpose_a)
        .Default(false)
        .Help("swap the last two axes of a");
    f.Add("transpose_b", &BatchDotParam::transpose_b)
        .Default(false)
        .Help("swap the last two axes of b");
    f.Ignored("forward_stype", "arrays are dense");
  }
};

class BatchDotProperty final : public PropertyWithParam<BatchDotParam> {
 public:
  std::string TypeString() const override { return "batch_dot"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }
  std::string Description() const override {
    return "matrix products, one for every index of the leading axes";
  }
  std::vector<std::string> ListArguments() const override { return {"lhs", "rhs"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[0], in_data[1]};
  }
  double ForwardFlops(const std::vector<TShape>& in, const std::vector<TShape>& out) const override;

  // The last two axes are the matrix, the others the batch.
  MXTRAIN_API ProductViews Views(const TShape& lhs, const TShape& rhs) const;
};

}  // namespace mxtrain::dot
