// SPDX-License-Identifier: Apache-2.0
#pragma once
// Builds a pass's result: nodes are added in topological order, entries of the old graph are mapped
// to entries of the new one, and Finish drops unread nodes (variables stay: they are the user's
// lists).
#include <vector>

#include "mxtrain/executor/passes.h"

namespace mxtrain::executor {

class Rewriter {
 public:
  explicit Rewriter(const ExecGraph& old);

  // Adds a node whose inputs are entries of the new graph.
  int Add(ExecNode node);
  // Adds a copy of an old node with mapped inputs, and maps its outputs to the copy's.
  int Keep(int old_id);
  NodeEntry Map(NodeEntry old) const { return old ? map_[old.node][old.index] : old; }
  void Redirect(NodeEntry old, NodeEntry now);
  ExecGraph& graph() { return graph_; }
  const TensorSpec& spec(NodeEntry e) const { return graph_.spec(e); }
  // `entry` in another layout; one node per entry and layout. `name`: the array's.
  NodeEntry Reordered(NodeEntry entry, Layout layout);

  ExecGraph Finish();

 private:
  const ExecGraph& old_;
  ExecGraph graph_;
  std::vector<std::vector<NodeEntry>> map_;
  struct Reorder {
    NodeEntry from;
    DType type;
    Layout layout;
    NodeEntry to;
  };
  std::vector<Reorder> reordered_;
};

}  // namespace mxtrain::executor
