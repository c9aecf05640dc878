// SPDX-License-Identifier: Apache-2.0
#pragma once
// dot(a, b): the inner product of vectors, the product of matrices; with more axes the last axis of
// a is multiplied with the first of b (with transpose_a the first of a, with transpose_b the last
// of b). Every case is one matrix product, C [m, n] = A [m, k] B [k, n], with strided rows and
// columns.
#include "mxtrain/operator/property.h"
#include "mxtrain/operators/dot/products.h"

namespace mxtrain::dot {

struct DotParam : Parameter<DotParam> {
  bool transpose_a = false, transpose_b = false;
  static void Declare(Fields<DotParam>& f) {
    f.Add("transpose_a", &DotParam::transpose_a)
        .Default(false)
        .Help("sum over the first axis of a, not the last");
    f.Add("transpose_b", &DotParam::transpose_b)
        .Default(false)
        .Help("sum over the last axis of b, not the first");
    f.Ignored("forward_stype", "arrays are dense");
  }
};

class DotProperty final : public PropertyWithParam<DotParam> {
 public:
  std::string TypeString() const override { return "dot"; }
  MixedPrecision mixed_precision() const override { return {MixedPrecision::kGains, 2}; }
  std::string Description() const override {
    return "the product of two matrices, the inner product of two vectors";
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

  // The axes before (or after) the summed one are rows (columns).
  MXTRAIN_API ProductViews Views(const TShape& lhs, const TShape& rhs) const;
};

}  // namespace mxtrain::dot
