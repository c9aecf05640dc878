// SPDX-License-Identifier: Apache-2.0
#pragma once
// The contents of a drawing of a net: its graph without parameters and labels; operators that only
// post-process an array (batch norm, activation, dropout) share the box of the operator that made
// it.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/symbol/graph.h"

namespace mxtrain::commands {

struct NetBox {
  enum class Family { kInput, kConvolution, kMatrix, kPooling, kJoin, kHead, kOther };
  Family family = Family::kOther;
  std::string what;   // "conv 3×3, 64, stride 2, batch norm, relu"
  std::string name;   // of its first layer
  std::string shape;  // of its output, per example: "64×56×56"
  int64_t parameters = 0;
  std::vector<int> inputs;  // boxes, each once
};

// In topological order.
std::vector<NetBox> MakeNetBoxes(const Graph& graph, const InferredSpecs& specs,
                                 const std::set<std::string>& inputs,
                                 const std::set<std::string>& labels);

}  // namespace mxtrain::commands
