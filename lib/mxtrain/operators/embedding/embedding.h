// SPDX-License-Identifier: Apache-2.0
#pragma once
// Embedding: output[i..., :] = weight[data[i...], :]. Data of any shape and numeric type; weight
// [input_dim, output_dim]. Fractions are truncated; an index out of range becomes the nearest row.
// The gradient of a row is the sum over its occurrences, in their order. The data have none.
#include "mxtrain/operators/embedding/weight_rows.h"

namespace mxtrain {

struct EmbeddingParam : Parameter<EmbeddingParam> {
  int64_t input_dim, output_dim;
  DType dtype;
  bool sparse_grad;
  static void Declare(Fields<EmbeddingParam>& f) {
    using P = EmbeddingParam;
    DeclareWeightRows(f);
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

class EmbeddingProperty final : public WeightRowsProperty<EmbeddingParam> {
 public:
  std::string TypeString() const override { return "Embedding"; }
  std::string Description() const override { return "rows of a weight, selected by the data"; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;

 protected:
  DType default_type() const override { return param_.dtype; }
};

}  // namespace mxtrain
