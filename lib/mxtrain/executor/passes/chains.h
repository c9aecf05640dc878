#pragma once
// Chains of operators that a fusion may take: each the only reader of the one before it, and nobody asked to see what lies between.
#include <optional>
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

// A chain that was found: ids of its nodes, producer first, and for each but the first the input through which the one before comes.
struct Chain {
  std::vector<int> ids, through;
};

class ChainMatcher {
 public:
  ChainMatcher(const ExecGraph& graph, const BindRequest& request);

  // The chain that ends at node `last`, unless one of its nodes was claimed.
  std::optional<Chain> Match(const std::vector<FusePattern::Link>& links, int last) const;
  // Its nodes belong to one fusion and can be in no other.
  void Claim(const Chain& chain);
  // Whether an output of the node beside the first is read.
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
