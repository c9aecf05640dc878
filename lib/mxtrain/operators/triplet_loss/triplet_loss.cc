// SPDX-License-Identifier: Apache-2.0
// Losses with a margin, one for each sample; MakeLoss makes them the loss of a net. With d a
// distance over all axes but the first:
//   triplet_loss          max(0, d(data, positive) - d(data, negative) + margin), d the sum of
//                         squares or the Euclidean distance
//   margin_ranking_loss   max(0, margin - label (lhs - rhs)), for every element; label is 1 where
//                         lhs should be the larger one, else -1, and has no gradient
#include <vector>

#include "mxtrain/operator/composite.h"

namespace mxtrain {
namespace {

enum Distance : int { kSquared, kEuclidean };

struct TripletParam : Parameter<TripletParam> {
  double margin;
  int distance;
  static void Declare(Fields<TripletParam>& f) {
    f.Add("margin", &TripletParam::margin)
        .Default(1)
        .Range(0)
        .Help("how much nearer the positive sample should be than the negative one");
    f.Add("distance", &TripletParam::distance)
        .Enum({{"squared", kSquared}, {"euclidean", kEuclidean}})
        .Default(kSquared)
        .Help("the sum of squared differences, or its root");
  }
};

struct RankingParam : Parameter<RankingParam> {
  double margin;
  static void Declare(Fields<RankingParam>& f) {
    f.Add("margin", &RankingParam::margin)
        .Default(0)
        .Range(0)
        .Help("how much the larger one should exceed the other");
  }
};

void CompleteSame(const char* who, const std::vector<const char*>& names, std::vector<TShape>* in) {
  TShape common;
  for (size_t i = 0; i < in->size(); ++i) UnifyShape((*in)[i], &common, who, names[i]);
  in->assign(in->size(), common);
}

void CompleteTriplet(const TripletParam&, std::vector<TShape>* in) {
  CompleteSame("triplet_loss", {"data", "positive", "negative"}, in);
  if ((*in)[0].has_rank() && (*in)[0].ndim() < 2) {
    Throw(ErrorKind::kConfig,
          "triplet_loss: data of shape {} have no axis of features; expected "
          "[N, ...]",
          (*in)[0].ToString());
  }
}

void LowerTriplet(const TripletParam& param, Lowering& g) {
  std::vector<int64_t> axes;
  for (int i = 1; i < g.shape(0).ndim(); ++i) axes.push_back(i);
  const Kwargs features = {{"axis", params::Print(TShape(axes))}};
  const auto distance = [&](int other) {
    const auto difference = g("elemwise_sub", {g.argument(0), g.argument(other)});
    if (param.distance == kEuclidean) return g("norm", {difference}, features);
    return g("sum", {g("square", {difference})}, features);
  };
  const auto excess = g("elemwise_sub", {distance(1), distance(2)});
  g.SetOutput(0, g("relu", {g.WithScalar("_plus_scalar", excess, param.margin)}));
}

void CompleteRanking(const RankingParam&, std::vector<TShape>* in) {
  CompleteSame("margin_ranking_loss", {"lhs", "rhs", "label"}, in);
}

void LowerRanking(const RankingParam& param, Lowering& g) {
  const auto difference = g("elemwise_sub", {g.argument(0), g.argument(1)}),
             product = g("elemwise_mul", {difference, g.argument(2)});
  g.SetOutput(0, g("relu", {g.WithScalar("_rminus_scalar", product, param.margin)}));
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(triplet_loss, registry) {
  using namespace mxtrain;
  AddComposite<TripletParam>(
      registry,
      {.name = "triplet_loss",
       .description = "how far a positive sample is not nearer than a negative one by a margin",
       .arguments = {"data", "positive", "negative"},
       .complete = CompleteTriplet,
       .lower = LowerTriplet});
  AddComposite<RankingParam>(
      registry, {.name = "margin_ranking_loss",
                 .description = "how far the larger of two numbers does not exceed the other",
                 .arguments = {"lhs", "rhs", "label"},
                 .labels = {"label"},
                 .complete = CompleteRanking,
                 .lower = LowerRanking});
}
