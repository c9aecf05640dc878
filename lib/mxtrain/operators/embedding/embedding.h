// SPDX-License-Identifier: Apache-2.0
#pragma once
// Embedding: output[i..., :] = weight[data[i...], :]. Data of any shape and numeric type; weight
// [input_dim, output_dim]. Fractions are truncated; an index out of range becomes the nearest row.
// The gradient of a row is the sum over its occurrences, in their order. The data have none.
#include "mxtrain/operator/property.h"

namespace mxtrain {

struct EmbeddingParam : Parameter<EmbeddingParam> {
  int64_t input_dim, output_dim;
  DType dtype;
  bool sparse_grad;
  static void Declare(Fields<EmbeddingParam>& f) {
    using P = EmbeddingParam;
    f.Add("input_dim", &P::input_dim).Required().Range(1).Help("rows of the weight: words");
    f.Add("output_dim", &P::output_dim).Required().Range(1).Help("length of a row");
    f.Add("dtype", &P::dtype)
        .Default(DType::kFloat32)
        .Help("type of the weight, unless that is known otherwise");
    f.Add("sparse_grad", &P::sparse_grad)
        .Default(false)
        .Help(
            "training updates only the rows that the batch reads: momentum, moments and weight "
            "decay of the others wait");
  }
};

class EmbeddingProperty final : public PropertyWithParam<EmbeddingParam> {
 public:
  enum Argument { kData, kWeight };

  std::string TypeString() const override { return "Embedding"; }
  std::string Description() const override { return "rows of a weight, selected by the data"; }
  std::vector<std::string> ListArguments() const override { return {"data", "weight"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool InferType(std::vector<DType>* in, std::vector<DType>* out,
                 std::vector<DType>* aux) const override;
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>& in_data,
                                             const std::vector<int>&) const override {
    return {out_grad[0], in_data[kData]};
  }
  bool HasGradient(int argument) const override { return argument == kWeight; }
};

}  // namespace mxtrain
