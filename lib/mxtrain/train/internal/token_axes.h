// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which axis of each array of a net is the batch, and which the tokens (train/token_steps.h).
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/expected.h"
#include "mxtrain/symbol/graph.h"

namespace mxtrain::token_steps {

// Neither: the array is the same for every example, a parameter or what is computed of some.
struct TokenAxes {
  int batch = -1, tokens = -1;
  bool constant() const { return batch < 0; }
  friend bool operator==(const TokenAxes&, const TokenAxes&) = default;
};

// What a layer becomes.
enum class Step {
  kSame,       // the same operator with the same parameters
  kReshape,    // a Reshape to the shape of its output, with other lengths of batch and tokens
  kAttention,  // cached_attention
  kRotation,   // the same, at the positions of the tokens
};

// Of a net in which no layer but causal attention mixes tokens.
struct TokenGraph {
  Graph graph;
  InferredSpecs specs;  // for the whole window and an arbitrary batch
  int64_t window = 0;
  std::vector<std::vector<TokenAxes>> axes;  // [node][output]
  std::vector<Step> steps;                   // [node]
  // [node][input]: constants with a value for each place of the window, along this axis; -1: none.
  std::vector<std::vector<int>> places;

  const TokenAxes& AxesOf(const NodeEntry& entry) const {
    return axes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
  const TShape& ShapeOf(const NodeEntry& entry) const {
    return specs.shapes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
};

// A refusal names the first layer that may mix tokens.
Expected<TokenGraph, Refusal> FollowTokens(const Graph& graph, const std::string& input,
                                           int64_t window);

}  // namespace mxtrain::token_steps
