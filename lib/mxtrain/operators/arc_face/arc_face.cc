// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/arc_face/arc_face.h"

#include <cmath>
#include <numbers>

#include "mxtrain/operator/composite.h"

namespace mxtrain {

bool ArcFaceProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                 std::vector<TShape>*) const {
  const TShape& data = (*in)[kData];
  if (!data.has_rank()) return false;
  if (data.ndim() != 2) {
    Throw(ErrorKind::kConfig, "ArcFace: data has shape {}; expected [N, features]",
          data.ToString());
  }
  UnifyShape({param_.num_hidden, data[1]}, &(*in)[kWeight], TypeString(), "weight");
  UnifyShape({data[0]}, &(*in)[kLabel], TypeString(), "label");
  for (TShape& shape : *out)
    UnifyShape({data[0], param_.num_hidden}, &shape, TypeString(), "output");
  return data.known();
}

bool ArcFaceProperty::Lower(Lowering* graph) const {
  Lowering& g = *graph;
  const double margin = param_.margin, farthest = std::cos(std::numbers::pi - margin);
  const std::string classes = params::Print(param_.num_hidden);
  const auto unit = [&](int argument) {
    return g("L2Normalization", {g.argument(argument)}, {{"eps", "1e-30"}});
  };
  const auto cosine = g("FullyConnected", {unit(kData), unit(kWeight)},
                        {{"num_hidden", classes}, {"no_bias", "True"}});
  // The slope of the root is infinite at 0.
  const auto square = g.WithScalar("_rminus_scalar", g("square", {cosine}), 1);
  const auto sine = g("sqrt", {g("clip", {square}, {{"a_min", "1e-7"}, {"a_max", "1"}})});
  const auto shifted = g("elemwise_sub", {g.WithScalar("_mul_scalar", cosine, std::cos(margin)),
                                          g.WithScalar("_mul_scalar", sine, std::sin(margin))});
  const auto past = g.WithScalar("_minus_scalar", cosine, margin * std::sin(margin));
  const auto moved = g("where", {g.WithScalar("_greater_scalar", cosine, farthest), shifted, past});
  const auto own = g("one_hot", {g.argument(kLabel)}, {{"depth", classes}});
  const auto result = g("where", {own, moved, cosine});
  g.SetOutput(0, g.WithScalar("_mul_scalar", result, param_.scale));
  g.SetOutput(1, g.WithScalar("_mul_scalar", cosine, param_.scale));
  return true;
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(arc_face, registry) {
  registry.AddProperty("ArcFace", {}, [] { return std::make_unique<mxtrain::ArcFaceProperty>(); });
}
