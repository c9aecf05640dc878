// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/rewriter.h"

#include "mxtrain/base/error.h"

namespace mxtrain::executor {

Rewriter::Rewriter(const ExecGraph& old) : old_(old), map_(old.nodes.size()) {
  graph_.nodes.reserve(old.nodes.size() + 16);
  for (size_t id = 0; id < old.nodes.size(); ++id) map_[id].resize(old.nodes[id].specs.size());
}

int Rewriter::Add(ExecNode node) {
  for (const NodeEntry& e : node.inputs)
    MXTRAIN_ASSERT(e.node < static_cast<int>(graph_.nodes.size()));
  graph_.nodes.push_back(std::move(node));
  return static_cast<int>(graph_.nodes.size()) - 1;
}

int Rewriter::Keep(int old_id) {
  ExecNode node = old_.nodes[old_id];
  for (NodeEntry& e : node.inputs) e = Map(e);
  for (NodeEntry& e : node.adds_to) e = Map(e);
  if (node.forward >= 0) {
    // Output 0 of a forward node is always kept with its node.
    node.forward = map_[node.forward][0].node;
  }
  const int id = Add(std::move(node));
  for (size_t i = 0; i < map_[old_id].size(); ++i) map_[old_id][i] = {id, static_cast<int>(i)};
  return id;
}

void Rewriter::Redirect(NodeEntry old, NodeEntry now) {
  map_[old.node][old.index] = now;
}

NodeEntry Rewriter::Reordered(NodeEntry entry, Layout layout) {
  const TensorSpec from = spec(entry);
  if (from.layout == layout) return entry;
  // Conversions of a variable start from the variable itself, so one conversion need not live until
  // the next.
  if (const ExecNode& node = graph_.nodes[entry.node];
      node.kind == Node::Kind::kReorder && graph_.nodes[node.inputs[0].node].is_variable()) {
    entry = node.inputs[0];
    if (spec(entry).type == from.type && spec(entry).layout == layout) return entry;
  }
  for (const Reorder& reorder : reordered_) {
    if (reorder.from == entry && reorder.type == from.type && reorder.layout == layout)
      return reorder.to;
  }
  ExecNode node;
  node.kind = Node::Kind::kReorder;
  const ExecNode& source = graph_.nodes[entry.node];
  node.name = format("{}_to_{}", source.name, layout.Name());
  if (entry.index > 0) node.name += format("_{}", entry.index);
  node.where = source.where;
  node.PlaceBeside(source);
  node.inputs = {entry};
  node.specs = {TensorSpec{from.shape, from.type, layout}};
  node.req = {OpReqType::kWriteTo};
  node.adds_to.resize(1);
  const NodeEntry to{Add(std::move(node)), 0};
  reordered_.push_back({entry, from.type, layout, to});
  return to;
}

ExecGraph Rewriter::Finish() {
  for (const NodeEntry& e : old_.heads) graph_.heads.push_back(Map(e));
  for (const NodeEntry& e : old_.gradients) graph_.gradients.push_back(Map(e));
  for (const NodeEntry& e : old_.head_grads) graph_.head_grads.push_back(Map(e));
  for (int id : old_.arguments) graph_.arguments.push_back(map_[id][0].node);
  for (int id : old_.auxiliaries) graph_.auxiliaries.push_back(map_[id][0].node);
  if (old_.loss_scale >= 0) graph_.loss_scale = map_[old_.loss_scale][0].node;

  const int n = static_cast<int>(graph_.nodes.size());
  std::vector<bool> keep(n);
  for (int id = 0; id < n; ++id) keep[id] = graph_.nodes[id].is_variable();
  for (const auto* list : {&graph_.heads, &graph_.gradients}) {
    for (const NodeEntry& e : *list) {
      if (e) keep[e.node] = true;
    }
  }
  for (int id = n - 1; id >= 0; --id) {
    if (!keep[id]) continue;
    for (const NodeEntry& e : graph_.nodes[id].inputs) {
      if (e) keep[e.node] = true;
    }
    for (const NodeEntry& e : graph_.nodes[id].adds_to) {
      if (e) keep[e.node] = true;
    }
    if (graph_.nodes[id].forward >= 0) keep[graph_.nodes[id].forward] = true;
  }
  std::vector<int> now(n, -1);
  ExecGraph result;
  for (int id = 0; id < n; ++id) {
    if (!keep[id]) continue;
    now[id] = static_cast<int>(result.nodes.size());
    result.nodes.push_back(std::move(graph_.nodes[id]));
  }
  auto move = [&now](NodeEntry& e) {
    if (e) e.node = now[e.node];
  };
  for (ExecNode& node : result.nodes) {
    for (NodeEntry& e : node.inputs) move(e);
    for (NodeEntry& e : node.adds_to) move(e);
    if (node.forward >= 0) node.forward = now[node.forward];
  }
  result.heads = std::move(graph_.heads);
  result.gradients = std::move(graph_.gradients);
  result.head_grads = std::move(graph_.head_grads);
  for (auto* list : {&result.heads, &result.gradients, &result.head_grads}) {
    for (NodeEntry& e : *list) move(e);
  }
  for (int id : graph_.arguments) result.arguments.push_back(now[id]);
  for (int id : graph_.auxiliaries) result.auxiliaries.push_back(now[id]);
  if (graph_.loss_scale >= 0) result.loss_scale = now[graph_.loss_scale];
  if (old_.first_backward >= 0) {
    for (size_t id = 0; id < result.nodes.size(); ++id) {
      if (result.nodes[id].backward_pass) {
        result.first_backward = static_cast<int>(id);
        break;
      }
    }
  }
  return result;
}

}  // namespace mxtrain::executor
