// SPDX-License-Identifier: Apache-2.0
#pragma once
// EmbeddingBag: output[n, :] = the mean over j of weight[data[n, j], :], without the j whose data
// is `padding`; zeros if there are no others (Joulin et al. 2016, "Bag of Tricks for Efficient Text
// Classification", arXiv 1607.01759). Data [N, length] of any numeric type, weight [input_dim,
// output_dim], output [N, output_dim]. Fractions are truncated; an index out of range becomes the
// nearest row. Means are sums in the order of j times 1 / count. The gradient of a row is the sum
// over its occurrences, in their order. The data have none.
//
// The same as a graph of Embedding and a product, which devices without a kernel compute.
#include "mxtrain/operators/embedding/weight_rows.h"

namespace mxtrain {

struct EmbeddingBagParam : Parameter<EmbeddingBagParam> {
  int64_t input_dim, output_dim, padding;
  bool sparse_grad;
  static void Declare(Fields<EmbeddingBagParam>& f) {
    using P = EmbeddingBagParam;
    DeclareWeightRows(f);
    f.Add("padding", &P::padding)
        .Default(-1)
        .Range(-1, 1 << 24)
        .Help("number that does not count, after the last word of a text; -1: none");
    f.Add("sparse_grad", &P::sparse_grad)
        .Default(false)
        .Help("training updates only the rows that the batch reads, as of Embedding");
  }
};

class EmbeddingBagProperty final : public WeightRowsProperty<EmbeddingBagParam> {
 public:
  std::string TypeString() const override { return "EmbeddingBag"; }
  std::string Description() const override {
    return "the mean of rows of a weight, selected by the data";
  }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
  bool Lower(Lowering* graph) const override;
};

}  // namespace mxtrain
