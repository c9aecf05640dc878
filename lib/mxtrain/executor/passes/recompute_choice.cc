// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "mxtrain/executor/internal/recompute.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain::executor {
namespace {

constexpr int kMaxParts = 400;
constexpr int kBuckets = 128;  // of bytes held, in the dynamic program
// Maximum cost of a cheap node, relative to moving its arrays once.
constexpr double kCheapness = 1.25;

int64_t BytesOf(const std::vector<TensorSpec>& specs) {
  int64_t bytes = 0;
  for (const TensorSpec& spec : specs) bytes += spec.Bytes();
  return bytes;
}

// The cheapest way to pass a cut point with a given number of bytes held.
struct State {
  double cost = std::numeric_limits<double>::infinity();
  int64_t held = 0;
  // The predecessor: the first part of the last segment, and the bucket before it.
  int part = -1, bucket = -1, mode = 0;
};

}  // namespace

RecomputeChoice::RecomputeChoice(const ExecGraph& graph, const MemoryPlan& plain)
    : graph_(graph),
      plain_(plain),
      forward_nodes_(graph.first_backward),
      repeatable_(Repeatable(graph)),
      read_back_(graph.nodes.size()),
      cheap_(graph.nodes.size()) {
  for (const ExecNode& node : graph_.nodes) {
    if (!node.backward_pass) continue;
    for (const NodeEntry& e : node.inputs) {
      if (e && e.node < forward_nodes_) read_back_[e.node] = true;
    }
  }
  FindParts();
  FindCheap();
  MeasureBytes();
  for (Part& part : parts_) {
    part.cost[kCheap] = CostOf(part, cheap_, false);
    part.cost[kAll] = CostOf(part, repeatable_, true);
    part.cost_but_last = CostOf(part, repeatable_, false);
  }
}

double RecomputeChoice::CostOf(int id) const {
  const ExecNode& node = graph_.nodes[id];
  return node.plan ? node.plan->cost : MoveCost(static_cast<double>(2 * BytesOf(node.specs)));
}

// Cost of recomputing the repeatable nodes of a part that the backward pass or the next part needs.
double RecomputeChoice::CostOf(const Part& part, const std::vector<bool>& may,
                               bool with_last) const {
  std::vector<bool> read(static_cast<size_t>(part.end - part.begin));
  read.back() = with_last;
  double cost = 0;
  for (int id = part.end - 1; id >= part.begin; --id) {
    const bool kept = !with_last && id == part.end - 1;
    if (kept || !may[id] || !(read_back_[id] || read[id - part.begin])) continue;
    cost += CostOf(id);
    for (const NodeEntry& e : graph_.nodes[id].inputs) {
      if (e.node >= part.begin) read[e.node - part.begin] = true;
    }
  }
  return cost;
}

// A node is cheap if it only moves its arrays once, from arrays that are held for the backward pass
// anyway or are cheap themselves. Arrays at cut points are never cheap: they would be recomputed
// for the next part, long before their own.
void RecomputeChoice::FindCheap() {
  for (const Part& part : parts_) {
    for (int id = part.begin; id + 1 < part.end; ++id) {
      const ExecNode& node = graph_.nodes[id];
      if (!repeatable_[id]) continue;
      int64_t moved = BytesOf(node.specs);
      bool at_hand = true;
      for (const NodeEntry& e : node.inputs) {
        moved += graph_.spec(e).Bytes();
        const bool again = e.node >= part.begin && cheap_[e.node];
        at_hand = at_hand && (graph_.nodes[e.node].is_variable() || read_back_[e.node] || again);
      }
      cheap_[id] = at_hand && CostOf(id) <= kCheapness * MoveCost(static_cast<double>(moved));
    }
  }
}

// Cut points: after nodes whose output is the only one read later.
void RecomputeChoice::FindParts() {
  std::vector<std::vector<int>> last_reader(forward_nodes_);
  for (int id = 0; id < forward_nodes_; ++id) {
    last_reader[id].assign(graph_.nodes[id].specs.size(), id);
    for (const NodeEntry& e : graph_.nodes[id].inputs) last_reader[e.node][e.index] = id;
  }
  std::vector<int> change(forward_nodes_);  // of the number of arrays read later
  for (int id = 0; id < forward_nodes_; ++id) {
    if (graph_.nodes[id].is_variable()) continue;
    for (int reader : last_reader[id]) {
      ++change[id];
      --change[reader];
    }
  }
  std::vector<int> cuts;
  int passing = 0;
  for (int id = 0; id < forward_nodes_; ++id) {
    passing += change[id];
    if (passing == 1 && !graph_.nodes[id].is_variable() && last_reader[id][0] > id)
      cuts.push_back(id);
  }
  const size_t stride = 1 + cuts.size() / kMaxParts;
  Part part;
  for (size_t c = 0; c < cuts.size(); c += stride) {
    part.end = cuts[c] + 1;
    part.boundary = graph_.nodes[cuts[c]].specs[0].Bytes();
    part.boundary_waits = read_back_[cuts[c]];
    parts_.push_back(part);
    part = Part();
    part.begin = cuts[c] + 1;
  }
  part.end = forward_nodes_;
  if (part.begin < part.end) parts_.push_back(part);
}

void RecomputeChoice::MeasureBytes() {
  const int n = static_cast<int>(graph_.nodes.size());
  std::vector<int> part_of(n);  // including backward nodes
  for (int p = 0; p < static_cast<int>(parts_.size()); ++p)
    std::fill(part_of.begin() + parts_[p].begin, part_of.begin() + parts_[p].end, p);
  for (int id = forward_nodes_; id < n; ++id)
    part_of[id] =
        graph_.nodes[id].forward >= 0 ? part_of[graph_.nodes[id].forward] : part_of[id - 1];

  auto waits = [this](const Buffer& b) {
    return !b.external && b.first < forward_nodes_ && b.last >= forward_nodes_;
  };
  std::vector<int64_t> passing(n + 1);
  for (const Buffer& b : plain_.buffers) {
    if (b.external) continue;
    if (!waits(b)) {
      passing[b.first] += b.bytes;
      passing[b.last + 1] -= b.bytes;
      continue;
    }
    Part& part = parts_[part_of[b.first]];
    part.waiting[kKeep] += b.bytes;
    if (!repeatable_[b.first]) part.waiting[kAll] += b.bytes;
  }
  int64_t alive = 0;
  for (int id = 0; id < n; ++id) {
    alive += passing[id];
    parts_[part_of[id]].passing = std::max(parts_[part_of[id]].passing, alive);
  }
  for (Part& part : parts_) {
    part.waiting[kCheap] = part.waiting[kKeep];
    part.waiting[kAll] += part.boundary;
    for (int id = part.begin; id < part.end; ++id) {
      if (!cheap_[id]) continue;
      for (int buffer : plain_.buffer_of[id]) {
        if (buffer >= 0 && plain_.buffers[buffer].first == id && waits(plain_.buffers[buffer]))
          part.waiting[kCheap] -= plain_.buffers[buffer].bytes;
      }
    }
  }
}

std::vector<bool> RecomputeChoice::Within(int64_t bytes) const {
  const int n = static_cast<int>(parts_.size());
  // [parts done][bucket of bytes held].
  std::vector<std::vector<State>> states(n + 1, std::vector<State>(kBuckets + 1));
  states[0][0] = {0, 0, -1, -1, kKeep};
  auto reach = [&](int to, const State& state) {
    // The array at the last cut point may exceed everything before it.
    if (state.held > bytes) return;
    const int bucket = static_cast<int>(state.held * kBuckets / std::max<int64_t>(bytes, 1));
    State& known = states[to][bucket];
    if (state.cost < known.cost || (state.cost == known.cost && state.held < known.held))
      known = state;
  };
  for (int from = 0; from < n; ++from) {
    // Kept because of kAll.
    const int64_t extra =
        from > 0 && !parts_[from - 1].boundary_waits ? parts_[from - 1].boundary : 0;
    for (int bucket = 0; bucket <= kBuckets; ++bucket) {
      const State state = states[from][bucket];
      if (state.cost == std::numeric_limits<double>::infinity()) continue;
      const Part& next = parts_[from];
      const int64_t kept = state.held + next.waiting[kKeep],
                    cheap = state.held + next.waiting[kCheap];
      // Recomputed one by one, cheap ones need no more than kept ones.
      if (kept + next.passing <= bytes) {
        reach(from + 1, {state.cost, kept, from, bucket, kKeep});
        reach(from + 1, {state.cost + next.cost[kCheap], cheap, from, bucket, kCheap});
      }
      // Extends a segment in which everything is recomputed.
      const bool kept_already = from == 0 || state.mode == kAll;
      const int64_t held = state.held + (kept_already ? 0 : extra);
      int64_t inside = 0, passing = 0, fixed = 0;
      double cost = state.cost;
      for (int to = from; to < n; ++to) {
        inside += parts_[to].waiting[kKeep];
        passing = std::max(passing, parts_[to].passing);
        fixed += parts_[to].waiting[kAll] - parts_[to].boundary;
        if (held + inside + passing > bytes) break;
        reach(to + 1, {cost + parts_[to].cost_but_last, held + fixed + parts_[to].boundary, from,
                       bucket, kAll});
        cost += parts_[to].cost[kAll];
      }
    }
  }
  const auto best =
      std::min_element(states[n].begin(), states[n].end(),
                       [](const State& a, const State& b) { return a.cost < b.cost; });
  if (best->cost == std::numeric_limits<double>::infinity()) return {};

  std::vector<bool> again(graph_.nodes.size());
  int to = n;
  for (const State* state = &*best; to > 0;) {
    const int last = to == n ? -1 : parts_[to - 1].end - 1;  // at the cut point, kept
    for (int id = parts_[state->part].begin; id < parts_[to - 1].end && state->mode != kKeep;
         ++id) {
      again[id] = state->mode == kCheap ? cheap_[id] : repeatable_[id] && id != last;
    }
    to = state->part;
    state = &states[to][state->bucket];
  }
  return again;
}

}  // namespace mxtrain::executor
