// SPDX-License-Identifier: Apache-2.0
#pragma once
// Chains of operators that can be fused: each is the only reader of the one before it, and no
// intermediate is monitored.
#include <optional>
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

// A matched chain: node ids, producer first, and for each but the first the input that reads its
// predecessor.
struct Chain {
  std::vector<int> ids, through;
};

class ChainMatcher {
 public:
  ChainMatcher(const ExecGraph& graph, const BindRequest& request);

  // The chain that ends at node `last`, unless one of its nodes is claimed.
  std::optional<Chain> Match(const std::vector<FusePattern::Link>& links, int last) const;
  // Reserves its nodes for one fusion.
  void Claim(const Chain& chain);
  // Whether an output of the node other than the first is read.
  bool ShowsMore(int id) const;

 private:
  bool Extend(const std::vector<FusePattern::Link>& links, size_t link, int id, Chain* chain) const;
  bool MayVanish(int id) const;

  const ExecGraph& graph_;
  const BindRequest& request_;
  const std::vector<std::vector<int>> readers_;
  std::vector<bool> claimed_;
};

}  // namespace mxtrain::executor
