// SPDX-License-Identifier: Apache-2.0
#pragma once
// one_hot: output[i..., k] = on_value if k == indices[i...], else off_value, for k in [0, depth).
// Indices of any shape and numeric type; fractions are truncated. An index out of range, or NaN,
// gives a row of off_value. Indices have no gradient.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct OneHotParam : Parameter<OneHotParam> {
  int64_t depth;
  double on_value, off_value;
  DType dtype;
  static void Declare(Fields<OneHotParam>& f) {
    using P = OneHotParam;
    f.Add("depth", &P::depth).Required().Range(1).Help("length of the new last axis: classes");
    f.Add("on_value", &P::on_value).Default(1).AnyNumber().Help("element at the index");
    f.Add("off_value", &P::off_value).Default(0).AnyNumber().Help("all other elements");
    f.Add("dtype", &P::dtype).Default(DType::kFloat32).Help("type of the output");
  }
};

class OneHotProperty final : public PropertyWithParam<OneHotParam> {
 public:
  std::string TypeString() const override { return "one_hot"; }
  std::string Description() const override {
    return "a vector for each index, with one element set";
  }
  std::vector<std::string> ListArguments() const override { return {"indices"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }
  bool HasGradient(int) const override { return false; }
};

}  // namespace mxtrain
