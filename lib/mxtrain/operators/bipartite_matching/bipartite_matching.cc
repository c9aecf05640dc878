// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/bipartite_matching/bipartite_matching.h"

#include "mxtrain/operator/registry.h"

namespace mxtrain {

bool BipartiteMatchingProperty::InferShape(std::vector<TShape>* in, std::vector<TShape>* out,
                                           std::vector<TShape>*) const {
  const TShape& scores = (*in)[0];
  if (!scores.has_rank()) return false;
  const int last = scores.ndim() - 1;
  if (last < 1) {
    Throw(ErrorKind::kConfig, "{}: the data have shape {}; expected [..., rows, columns]",
          TypeString(), scores.ToString());
  }
  TShape of_rows(std::vector<int64_t>(scores.begin(), scores.end() - 1)), of_columns = of_rows;
  of_columns[last - 1] = scores[last];
  UnifyShape(of_rows, &(*out)[0], TypeString(), "output0");
  UnifyShape(of_columns, &(*out)[1], TypeString(), "output1");
  return scores.known();
}

}  // namespace mxtrain

MXTRAIN_OPERATOR(bipartite_matching, registry) {
  registry.AddProperty("_contrib_bipartite_matching", {"bipartite_matching"},
                       [] { return std::make_unique<mxtrain::BipartiteMatchingProperty>(); });
}
