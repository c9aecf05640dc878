// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the nodes of a graph read and in which order they can be computed. Private to onnx.
#include <set>
#include <string>
#include <vector>

#include "mxtrain/onnx/model.h"

namespace mxtrain::onnx {

// Calls `visit` with each value that a node reads, those that graphs within it read included
// (among them values of these graphs themselves).
template <typename Fn>
void ForEachRead(const ModelNode& node, const Fn& visit) {
  for (const std::string& input : node.inputs) {
    if (!input.empty()) visit(input);
  }
  for (const auto& [name, attribute] : node.attributes) {
    const auto* graph = std::get_if<std::shared_ptr<const ModelGraph>>(&attribute);
    if (!graph) continue;
    for (const ModelNode& inner : (*graph)->nodes) ForEachRead(inner, visit);
    for (const std::string& output : (*graph)->outputs) visit(output);
  }
}

// Each node after those whose outputs it reads, otherwise as they stand; those of a cycle as they
// stand. The nodes are not owned.
std::vector<const ModelNode*> InOrder(const std::vector<ModelNode>& nodes);

// Those of nodes in order on whose outputs `wanted` depends; adds what they read to `wanted`.
std::vector<const ModelNode*> Needed(const std::vector<const ModelNode*>& nodes,
                                     std::set<std::string>* wanted);

}  // namespace mxtrain::onnx
