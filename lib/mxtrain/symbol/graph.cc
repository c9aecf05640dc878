// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/graph.h"

#include "mxtrain/base/post_order.h"

namespace mxtrain {
namespace {

std::vector<int> VariablesOfKind(const Graph& graph, Node::Kind kind) {
  std::vector<int> roots, found;
  for (const NodeEntry& head : graph.heads) roots.push_back(head.node);
  std::vector<bool> seen(graph.nodes.size());
  auto node = [&](int id) -> const Node& { return graph.nodes[static_cast<size_t>(id)]; };
  PostOrder(
      roots, [&](int id) { return node(id).inputs.size(); },
      [&](int id, size_t i) { return node(id).inputs[i].node; },
      [&](int id) {
        if (id < 0 || seen[static_cast<size_t>(id)])
          return false;  // an input may be absent (kBackward)
        seen[static_cast<size_t>(id)] = true;
        return true;
      },
      [&](int id) {
        if (node(id).kind == kind) found.push_back(id);
      });
  return found;
}

std::string Describe(const std::string& type, const Node& node) {
  return type + " '" + node.name + "'" + (node.where.empty() ? "" : " (" + node.where + ")");
}

}  // namespace

int NumOutputs(const Node& node) {
  return node.op ? node.op->NumOutputs() : 1;
}

std::string DescribeNode(const Node& node) {
  std::string type = "node";
  if (node.op) {
    type = node.op->TypeString();
  } else if (node.is_variable()) {
    type = node.kind == Node::Kind::kAux ? "auxiliary state" : "variable";
  }
  return Describe(type, node);
}

std::string MessageAtNode(const Node& node, const std::string& message, const std::string& type) {
  const std::string owner = node.op ? node.op->TypeString() : type;
  const std::string who = owner.empty() ? DescribeNode(node) : Describe(owner, node);
  const bool names_owner = !owner.empty() && message.starts_with(owner) &&
                           message.size() > owner.size() &&
                           (message[owner.size()] == ':' || message[owner.size()] == ' ');
  return names_owner ? who + message.substr(owner.size()) : who + ": " + message;
}

std::vector<int> Graph::Arguments() const {
  return VariablesOfKind(*this, Node::Kind::kVariable);
}
std::vector<int> Graph::Auxiliaries() const {
  return VariablesOfKind(*this, Node::Kind::kAux);
}

}  // namespace mxtrain
