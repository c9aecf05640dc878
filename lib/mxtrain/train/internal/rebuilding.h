// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a symbol of a graph again, with other nodes in places: how training changes a net before it
// is bound.
#include <functional>
#include <map>
#include <span>
#include <vector>

#include "mxtrain/symbol/symbol.h"

namespace mxtrain {

class Rebuilding {
 public:
  // What stands for an operator of the graph, given what stands for its inputs (arguments, then
  // auxiliary states). It has as many outputs as the node.
  using Build = std::function<Symbol(const Node& node, std::span<const Symbol> inputs)>;
  // `given`: what stands for an entry of the graph. The graph must outlive this.
  Rebuilding(const Graph& graph, std::map<NodeEntry, Symbol> given, Build build)
      : graph_(graph), given_(std::move(given)), build_(std::move(build)) {}

  // The outputs that stand for these; builds only what they need.
  Symbol Of(const std::vector<NodeEntry>& heads);

  // The node itself, with other parameters.
  static Symbol Create(const OperatorRegistry& operators, const Node& node, const Kwargs& params,
                       std::span<const Symbol> inputs) {
    return Symbol::Create(operators, node.op->TypeString(), node.name, params, inputs, {},
                          node.attrs, node.where);
  }

 private:
  std::vector<bool> Needed(const std::vector<NodeEntry>& heads) const;
  Symbol At(const NodeEntry& entry) const;

  const Graph& graph_;
  const std::map<NodeEntry, Symbol> given_;
  const Build build_;
  std::vector<Symbol> built_;
};

}  // namespace mxtrain
