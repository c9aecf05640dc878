// SPDX-License-Identifier: Apache-2.0
#include "tests/support/plan_reader.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::test {
namespace {

using executor::ExecNode;

int64_t Stored(int64_t bytes) {
  return (bytes + 63) / 64 * 64;
}

bool Meet(int64_t a_begin, int64_t a_end, int64_t b_begin, int64_t b_end) {
  return std::max(a_begin, b_begin) < std::min(a_end, b_end);
}

bool AliveTogether(const Content& a, const Content& b) {
  return a.first <= b.last && b.first <= a.last;
}

bool SameBytes(const TensorSpec& a, const TensorSpec& b) {
  return a.type == b.type && a.layout == b.layout && a.Bytes() == b.Bytes() &&
         (a.layout.plain() || a.shape == b.shape);
}

}  // namespace

PlanReader::PlanReader(const executor::ExecGraph& graph, const executor::MemoryPlan& plan)
    : graph_(graph), plan_(plan), content_of_(graph.nodes.size()), order_(graph.nodes.size(), -1) {
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    if (Runs(id)) {
      order_[id] = static_cast<int>(contents_of_.size());
      contents_of_.emplace_back();
      ReadInputs(id);
    }
    if (Runs(id) != plan.runs[id])
      found_.push_back(format("node '{}' {}", graph.nodes[id].name,
                              plan.runs[id] ? "runs unnecessarily" : "should run"));
    content_of_[id].assign(graph.nodes[id].specs.size(), -1);
    for (int i = 0; i < static_cast<int>(graph.nodes[id].specs.size()); ++i) AddOutput(id, i);
    if (Runs(id)) AddScratch(id);
  }
  auto keep = [&](NodeEntry e, const char* what) {
    if (!e) return;
    Content& c = contents_[content_of_[e.node][e.index]];
    c.last = Content::kForever;
    if (c.space == 0) found_.push_back(format("{} '{}' is in the arena", what, c.name));
  };
  for (const NodeEntry& e : graph.heads) keep(e, "head");
  for (const NodeEntry& e : graph.gradients) keep(e, "gradient");
}

bool PlanReader::Runs(int id) const {
  const ExecNode& node = graph_.nodes[id];
  if (node.is_variable()) return false;
  for (size_t i = 0; i < node.req.size(); ++i) {
    if (node.req[i] != OpReqType::kNullOp && !plan_.aliased[id][i]) return true;
  }
  return false;
}

int PlanReader::AddContent(std::string name, int first, int buffer, int64_t bytes) {
  Content c;
  c.name = std::move(name);
  c.first = c.last = first;
  c.bytes = bytes;
  c.space = plan_.buffers[buffer].external ? buffer + 1 : 0;
  c.offset = c.space ? 0 : plan_.buffers[buffer].offset;
  contents_.push_back(std::move(c));
  return static_cast<int>(contents_.size()) - 1;
}

void PlanReader::ReadInputs(int id) {
  for (const NodeEntry& e : graph_.nodes[id].inputs) {
    if (!e) continue;
    const int content = content_of_[e.node][e.index];
    if (content < 0) {
      found_.push_back(format("'{}' reads output {} of '{}', which is not computed",
                              graph_.nodes[id].name, e.index, graph_.nodes[e.node].name));
      continue;
    }
    Content& c = contents_[content];
    c.readers.push_back(id);
    c.last = std::max(c.last, id);
    contents_of_.back().push_back(content);
  }
}

// The input that output `output` equals byte for byte, as declared by the operator.
NodeEntry PlanReader::AliasSource(int id, int output) {
  const ExecNode& node = graph_.nodes[id];
  const bool backward = node.kind == Node::Kind::kBackward;
  for (const InplacePair& pair :
       backward ? node.op->BackwardIdentityOption() : node.op->ForwardIdentityOption()) {
    const NodeEntry from = node.inputs[pair.from];
    if (pair.to == output && from && SameBytes(graph_.spec(from), node.specs[output])) return from;
  }
  return {};
}

// The input that the kernel's plan allows output `output` to overwrite and that has the same place.
NodeEntry PlanReader::InplaceSource(int id, int output) {
  const ExecNode& node = graph_.nodes[id];
  const bool backward = node.kind == Node::Kind::kBackward;
  for (const InplacePair& pair :
       backward ? node.plan->backward_inplace : node.plan->forward_inplace) {
    const NodeEntry from = node.inputs[pair.from];
    if (pair.to != output || !from || graph_.spec(from).Bytes() != node.specs[output].Bytes())
      continue;
    if (plan_.buffer_of[from.node][from.index] == plan_.buffer_of[id][output]) return from;
  }
  return {};
}

void PlanReader::AddOutput(int id, int output) {
  const ExecNode& node = graph_.nodes[id];
  if (!node.is_variable() && node.req[output] == OpReqType::kNullOp) return;
  const int buffer = plan_.buffer_of[id][output];
  if (plan_.aliased[id][output]) {
    const NodeEntry from = AliasSource(id, output);
    if (from && plan_.buffer_of[from.node][from.index] == buffer) {
      content_of_[id][output] = content_of_[from.node][from.index];
      return;
    }
    found_.push_back(format("output {} of '{}' is an alias of nothing", output, node.name));
  }
  const int content = AddContent(format("{}:{}", node.name, output), node.is_variable() ? -1 : id,
                                 buffer, node.specs[output].Bytes());
  content_of_[id][output] = content;
  Content& c = contents_[content];
  c.state = node.kind == Node::Kind::kAux;
  if (node.is_variable() || node.precomputed) {
    c.last = Content::kForever;
    if (c.space == 0) found_.push_back(format("'{}' is external, but is in the arena", c.name));
  }
  if (order_[id] >= 0) contents_of_[order_[id]].push_back(content);
  NodeEntry onto;
  if (plan_.inplace[id][output]) {
    onto = InplaceSource(id, output);
    if (!onto)
      found_.push_back(format("output {} of '{}' is in place of nothing", output, node.name));
  } else if (node.adds_to[output]) {
    onto = node.adds_to[output];
    Content& sum = contents_[content_of_[onto.node][onto.index]];
    sum.last = std::max(sum.last, id);
  }
  if (onto) c.onto = content_of_[onto.node][onto.index];
}

void PlanReader::AddScratch(int id) {
  const ExecNode& node = graph_.nodes[id];
  const bool backward = node.kind == Node::Kind::kBackward;
  auto add = [&](int buffer, int64_t bytes, const char* what) {
    if (bytes <= 0) return;
    if (buffer < 0 || plan_.buffers[buffer].bytes < bytes) {
      found_.push_back(format("'{}' has no {} of {} bytes", node.name, what, bytes));
    } else {
      contents_of_.back().push_back(AddContent(node.name + " " + what, id, buffer, bytes));
    }
  };
  if (node.plan)
    add(plan_.workspace_of[id],
        backward ? node.plan->backward_workspace : node.plan->forward_workspace, "workspace");
  if (!node.op) return;
  std::vector<TShape> shapes;
  const ExecNode& forward = backward ? graph_.nodes[node.forward] : node;
  for (int i = 0; i < forward.num_args; ++i) shapes.push_back(graph_.spec(forward.inputs[i]).shape);
  const std::vector<ResourceRequest> requests =
      backward ? node.op->BackwardResource(shapes) : node.op->ForwardResource(shapes);
  for (size_t i = 0; i < requests.size(); ++i) {
    if (requests[i].type == ResourceRequest::kTempSpace)
      add(plan_.temp_space_of[id][i], requests[i].bytes, "temporary space");
  }
}

void PlanReader::CheckRange(const Content& c, std::vector<std::string>* faults) const {
  if (c.space == 0 &&
      (c.offset < 0 || c.offset % 64 != 0 || c.offset + c.bytes > plan_.arena_bytes)) {
    faults->push_back(format("'{}' is at [{}, {}) in an arena of {} bytes", c.name, c.offset,
                             c.offset + c.bytes, plan_.arena_bytes));
  }
}

// A content that takes over another's bytes must be its last reader, through one input only, and in
// the same place.
void PlanReader::CheckTakeOver(int taker, std::vector<std::string>* faults) const {
  const Content &now = contents_[taker], &before = contents_[now.onto];
  const bool adds =
      std::find(before.readers.begin(), before.readers.end(), now.first) == before.readers.end();
  const auto inputs = std::count(before.readers.begin(), before.readers.end(), now.first);
  if (before.last > now.first && before.last != Content::kForever)
    faults->push_back(format("'{}' overwrites '{}' before its last reader", now.name, before.name));
  if (before.last == Content::kForever)
    faults->push_back(
        format("'{}' overwrites '{}', which is read externally", now.name, before.name));
  if (!adds && inputs != 1)
    faults->push_back(format("'{}' overwrites '{}', which its node reads {} times", now.name,
                             before.name, inputs));
  if (now.space != before.space || now.offset != before.offset || now.bytes != before.bytes) {
    faults->push_back(format("'{}' and '{}' have different places", now.name, before.name));
  }
}

std::vector<std::string> PlanReader::Faults() const {
  std::vector<std::string> faults = found_;
  for (int i = 0; i < static_cast<int>(contents_.size()); ++i) {
    const Content& a = contents_[i];
    CheckRange(a, &faults);
    if (a.onto >= 0) CheckTakeOver(i, &faults);
    for (int k = 0; k < i; ++k) {
      const Content& b = contents_[k];
      const bool common =
          a.space == b.space && Meet(a.offset, a.offset + a.bytes, b.offset, b.offset + b.bytes);
      if (!common || !AliveTogether(a, b) || a.onto == k || b.onto == i) continue;
      faults.push_back(format("'{}' and '{}' are alive together and share bytes", a.name, b.name));
    }
  }
  return faults;
}

int64_t PlanReader::LowerBound() const {
  int64_t most = 0;
  for (int at = 0; at < static_cast<int>(graph_.nodes.size()); ++at) {
    int64_t sum = 0;
    for (const Content& c : contents_) {
      if (c.space != 0 || at < c.first || at > c.last) continue;
      sum += Stored(c.bytes);
      // While a node turns one content into another, they are one.
      if (at == c.first && c.onto >= 0) sum -= Stored(contents_[c.onto].bytes);
    }
    most = std::max(most, sum);
  }
  return most;
}

std::vector<std::vector<PlanReader::Use>> PlanReader::Uses(bool is_train) const {
  std::vector<std::vector<Use>> uses(contents_of_.size());
  for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
    if (order_[id] < 0) continue;
    const bool updates_states = is_train || graph_.nodes[id].kind == Node::Kind::kBackward;
    for (int content : contents_of_[order_[id]]) {
      const Content& c = contents_[content];
      if (c.bytes == 0) continue;
      uses[order_[id]].push_back(
          {c.space, c.offset, c.offset + c.bytes, c.first == id || (c.state && updates_states)});
    }
  }
  return uses;
}

std::vector<std::pair<int, int>> Conflicts(
    const std::vector<std::vector<PlanReader::Use>>& operations) {
  std::vector<std::pair<int, int>> conflicts;
  for (int b = 0; b < static_cast<int>(operations.size()); ++b) {
    for (int a = 0; a < b; ++a) {
      const bool conflict =
          std::any_of(operations[a].begin(), operations[a].end(), [&](const PlanReader::Use& x) {
            return std::any_of(operations[b].begin(), operations[b].end(),
                               [&](const PlanReader::Use& y) {
                                 return x.space == y.space && (x.writes || y.writes) &&
                                        Meet(x.begin, x.end, y.begin, y.end);
                               });
          });
      if (conflict) conflicts.emplace_back(a, b);
    }
  }
  return conflicts;
}

std::optional<std::pair<int, int>> FirstUnordered(const std::vector<std::pair<int, int>>& conflicts,
                                                  const std::vector<std::vector<int>>& edges) {
  std::vector<std::vector<bool>> before(edges.size(), std::vector<bool>(edges.size()));
  for (size_t b = 0; b < edges.size(); ++b) {
    for (int a : edges[b]) {
      before[b][a] = true;
      for (size_t k = 0; k < b; ++k) before[b][k] = before[b][k] || before[a][k];
    }
  }
  for (const auto& [a, b] : conflicts) {
    if (!before[b][a]) return std::pair(a, b);
  }
  return std::nullopt;
}

}  // namespace mxtrain::test
