// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/embedding_bag/embedding_bag.h"

#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/gather_property.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool EmbeddingBagProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                      std::vector<TShape>*) const {
  TShape &data = (*in)[kData], &weight = (*in)[kWeight], &output = (*out)[0];
  ExpectShape({param_.input_dim, param_.output_dim}, &weight, TypeString(), "weight");
  if (data.has_rank() && data.ndim() != 2) {
    Throw(ErrorKind::kConfig, "EmbeddingBag: data has shape {}; expected [N, length]",
          data.ToString());
  }
  if (!data.has_rank()) data = TShape::OfRank(2);
  TShape expected{data[0], param_.output_dim};
  UnifyShape(output, &expected, TypeString(), "output");
  output = expected;
  data = TShape{output[0], data[1]};
  return data.known();
}

bool EmbeddingBagProperty::Lower(Lowering* graph) const {
  Lowering& g = *graph;
  const TShape& data = g.shape(kData);
  const auto rows = g("Embedding", {g.argument(kData), g.argument(kWeight)},
                      {{"input_dim", params::Print(param_.input_dim)},
                       {"output_dim", params::Print(param_.output_dim)}});
  // 1 of each number that counts, [N, length, 1], of the weight's type.
  const auto column = g("slice_axis", {rows}, {{"axis", "2"}, {"begin", "0"}, {"end", "1"}});
  auto counts = g("ones_like", {column});
  if (param_.padding >= 0) {
    const auto is_real =
        g.WithScalar("_not_equal_scalar", g.argument(kData), static_cast<double>(param_.padding));
    counts = g("where", {g.Reshape(is_real, TShape{data[0], data[1], 1}), counts,
                         g("zeros_like", {column})});
  }
  const auto number =
      g.WithScalar("_maximum_scalar", g("sum", {counts}, {{"axis", "1"}, {"keepdims", "True"}}), 1);
  const auto shares = g("broadcast_div", {counts, number});
  const auto means = g("batch_dot", {shares, rows}, {{"transpose_a", "True"}});
  g.SetOutput(0, g.Reshape(means, TShape{data[0], param_.output_dim}));
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(embedding_bag, registry) {
  registry.AddProperty("EmbeddingBag", {},
                       [] { return std::make_unique<mxtrain::EmbeddingBagProperty>(); });
}
