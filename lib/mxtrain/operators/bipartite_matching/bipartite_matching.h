// SPDX-License-Identifier: Apache-2.0
#pragma once
// bipartite_matching: greedy matching (operator/greedy_matching.h) of rows and columns of scores
// [..., rows, columns]. Outputs: the column of each row [..., rows] and the row of each column
// [..., columns]; -1 where there is none. Without a gradient: it is zero.
//
// Scores above `threshold` are matched, the highest first; with is_ascend those below it, the
// lowest first. As in MXNet 1.9 topk = k, if positive, allows k + 1 pairs.
#include "mxtrain/operator/no_gradient.h"

namespace mxtrain {

struct BipartiteMatchingParam : Parameter<BipartiteMatchingParam> {
  bool is_ascend;
  float threshold;
  int topk;
  static void Declare(Fields<BipartiteMatchingParam>& f) {
    using P = BipartiteMatchingParam;
    f.Add("is_ascend", &P::is_ascend).Default(false).Help("the lowest scores are matched first");
    f.Add("threshold", &P::threshold)
        .Required()
        .Help("only scores above it are matched; with is_ascend: below it");
    f.Add("topk", &P::topk)
        .Default(-1)
        .Help("matrices have at most topk + 1 pairs, as in MXNet; below 1: any number");
  }
};

class BipartiteMatchingProperty final : public PropertyWithoutGradient<BipartiteMatchingParam> {
 public:
  std::string TypeString() const override { return "_contrib_bipartite_matching"; }
  std::string Description() const override {
    return "pairs of rows and columns, those with the best scores first";
  }
  std::vector<std::string> ListOutputs() const override { return {"output0", "output1"}; }
  bool InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                  std::vector<TShape>* aux) const override;
};

}  // namespace mxtrain
