// SPDX-License-Identifier: Apache-2.0
// PlanMemory: entries that may share bytes become one buffer; buffers with disjoint lifetimes share
// the arena.
#include <algorithm>
#include <iterator>
#include <numeric>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/host_kernel.h"

namespace mxtrain::executor {
namespace {

std::vector<Buffer> BuffersOf(const MemoryPlan& plan, int arena) {
  std::vector<Buffer> buffers;
  std::copy_if(plan.buffers.begin(), plan.buffers.end(), std::back_inserter(buffers),
               [arena](const Buffer& b) { return b.arena == arena; });
  return buffers;
}

class Planner {
 public:
  Planner(const ExecGraph& graph, Strategy strategy) : graph_(graph), strategy_(strategy) {}

  MemoryPlan Lifetimes() {
    FindDevices();
    NumberEntries();
    FindLifetimes();
    MarkExternal();
    JoinForced();
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (strategy_ == Strategy::kShare) break;
      JoinIdentities(id);
      JoinInPlace(id);
    }
    CollectBuffers();
    FindRuns();
    AddScratch();
    for (int arena = 0; arena < static_cast<int>(plan_.arenas.size()); ++arena) {
      plan_.arenas[arena].lower_bound = LowerBound(BuffersOf(plan_, arena));
      plan_.lower_bound += plan_.arenas[arena].lower_bound;
    }
    return std::move(plan_);
  }

 private:
  struct Life {
    int first, last;
    int readers_at_last = 0;  // input slots of node `last` that read it
    int until = 0;            // last node that may run beside one that uses it
    int until_before = -1;    // the same without node `last`
    bool external = false;
    bool taken = false;  // an output already runs in place on it at its last position
  };

  int LastBeside(int id) const { return std::max(id, graph_.nodes[id].last_beside); }
  int Id(NodeEntry e) const { return base_[e.node] + e.index; }
  int Find(int e) {
    while (parent_[e] != e) e = parent_[e] = parent_[parent_[e]];
    return e;
  }
  Life& Of(NodeEntry e) { return life_[Find(Id(e))]; }
  bool Wanted(int id, int output) const {
    return graph_.nodes[id].is_variable() || graph_.nodes[id].req[output] != OpReqType::kNullOp;
  }

  void FindDevices() {
    std::set<Context> devices;
    for (const ExecNode& node : graph_.nodes) devices.insert(node.ctx);
    for (const Context device : devices) plan_.arenas.push_back({.ctx = device});
  }
  int ArenaOf(int id) const {
    const auto found =
        std::find_if(plan_.arenas.begin(), plan_.arenas.end(),
                     [&](const ArenaPlan& arena) { return arena.ctx == graph_.nodes[id].ctx; });
    return static_cast<int>(found - plan_.arenas.begin());
  }

  void NumberEntries() {
    int n = 0;
    for (const ExecNode& node : graph_.nodes) {
      base_.push_back(n);
      n += static_cast<int>(node.specs.size());
    }
    parent_.resize(n);
    std::iota(parent_.begin(), parent_.end(), 0);
    life_.resize(n);
  }

  void FindLifetimes() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      for (size_t i = 0; i < graph_.nodes[id].specs.size(); ++i)
        life_[base_[id] + i] = {.first = id, .last = id, .until = LastBeside(id)};
      for (const NodeEntry& e : graph_.nodes[id].inputs) {
        if (!e) continue;
        Life& life = life_[Id(e)];
        if (life.last != id) life.until_before = life.until;
        life.readers_at_last = life.last == id ? life.readers_at_last + 1 : 1;
        life.last = id;
        life.until = std::max(life.until, LastBeside(id));
      }
    }
  }

  void MarkExternal() {
    auto mark = [this](NodeEntry e) {
      if (e) life_[Id(e)].external = true;
    };
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (!graph_.nodes[id].is_variable() && !graph_.nodes[id].precomputed) continue;
      for (int i = 0; i < static_cast<int>(graph_.nodes[id].specs.size()); ++i) mark({id, i});
    }
    for (const NodeEntry& e : graph_.heads) mark(e);
    for (const NodeEntry& e : graph_.gradients) mark(e);
  }

  void Join(NodeEntry a, NodeEntry b) {
    const int ra = Find(Id(a)), rb = Find(Id(b));
    if (ra == rb) return;
    parent_[rb] = ra;
    Life& x = life_[ra];
    const Life& y = life_[rb];
    x.external |= y.external;
    x.first = std::min(x.first, y.first);
    x.until_before = std::max(y.last > x.last ? x.until : x.until_before,
                              y.last < x.last ? y.until : y.until_before);
    x.until = std::max(x.until, y.until);
    if (y.last > x.last) {
      x.last = y.last;
      x.readers_at_last = y.readers_at_last;
      x.taken = y.taken;
    } else if (y.last == x.last) {
      x.readers_at_last += y.readers_at_last;
    }
  }

  // An entry that adds to another shares its buffer, under every strategy.
  void JoinForced() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      for (size_t i = 0; i < graph_.nodes[id].adds_to.size(); ++i) {
        if (graph_.nodes[id].adds_to[i])
          Join(graph_.nodes[id].adds_to[i], {id, static_cast<int>(i)});
      }
    }
  }

  // Pairs of (entry read, output of this node) from a list of positions.
  template <typename F>
  void ForPairs(int id, const std::vector<InplacePair>& pairs, F&& f) {
    const ExecNode& node = graph_.nodes[id];
    for (const InplacePair& pair : pairs) {
      if (pair.from >= static_cast<int>(node.inputs.size()) ||
          pair.to >= static_cast<int>(node.req.size()))
        continue;
      const NodeEntry from = node.inputs[pair.from];
      const NodeEntry to{id, pair.to};
      if (!from || node.req[pair.to] != OpReqType::kWriteTo) continue;
      if (joined_.size() <= static_cast<size_t>(Id(to))) joined_.resize(parent_.size());
      if (joined_[Id(to)]) continue;
      f(from, to);
    }
  }

  void JoinIdentities(int id) {
    const ExecNode& node = graph_.nodes[id];
    if (!node.op || node.precomputed) return;
    const bool backward = node.kind == Node::Kind::kBackward;
    const auto pairs =
        backward ? node.op->BackwardIdentityOption() : node.op->ForwardIdentityOption();
    ForPairs(id, pairs, [&](NodeEntry from, NodeEntry to) {
      const TensorSpec &a = graph_.spec(from), &b = graph_.spec(to);
      const bool same = a.layout == b.layout && (a.layout.plain() || a.shape == b.shape) &&
                        a.type == b.type && a.Bytes() == b.Bytes();
      if (!same || Of(to).external || Of(from).taken) return;
      Join(from, to);
      joined_[Id(to)] = true;
      aliases_.push_back(to);
    });
  }

  void JoinInPlace(int id) {
    const ExecNode& node = graph_.nodes[id];
    if (!node.plan || node.precomputed) return;
    const bool backward = node.kind == Node::Kind::kBackward;
    ForPairs(id, backward ? node.plan->backward_inplace : node.plan->forward_inplace,
             [&](NodeEntry from, NodeEntry to) {
               Life& source = Of(from);
               const bool last_reader =
                   source.last == id && source.readers_at_last == 1 && source.until_before < id;
               if (!last_reader || source.external || source.taken || Of(to).external ||
                   graph_.spec(from).Bytes() != graph_.spec(to).Bytes())
                 return;
               source.taken = true;
               Join(from, to);
               joined_[Id(to)] = true;
               inplace_.push_back(to);
             });
  }

  void CollectBuffers() {
    std::vector<int> buffer_of_root(parent_.size(), -1);
    plan_.buffer_of.resize(graph_.nodes.size());
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      plan_.buffer_of[id].assign(node.specs.size(), -1);
      plan_.aliased.emplace_back(node.specs.size());
      plan_.inplace.emplace_back(node.specs.size());
      for (int i = 0; i < static_cast<int>(node.specs.size()); ++i) {
        if (!Wanted(id, i)) continue;
        const int root = Find(base_[id] + i);
        int& buffer = buffer_of_root[root];
        if (buffer < 0) {
          buffer = static_cast<int>(plan_.buffers.size());
          plan_.buffers.push_back(
              {0, life_[root].first, life_[root].until, -1, life_[root].external, ArenaOf(id)});
        }
        // Entries of several devices never share memory.
        MXTRAIN_ASSERT(plan_.arenas[plan_.buffers[buffer].arena].ctx == node.ctx);
        plan_.buffers[buffer].bytes = std::max(plan_.buffers[buffer].bytes, node.specs[i].Bytes());
        plan_.buffer_of[id][i] = buffer;
      }
    }
    for (const NodeEntry& e : aliases_) plan_.aliased[e.node][e.index] = true;
    for (const NodeEntry& e : inplace_) plan_.inplace[e.node][e.index] = true;
  }

  int AddTemporary(int id, int64_t bytes) {
    if (bytes <= 0 || !plan_.runs[id]) return -1;
    plan_.buffers.push_back({bytes, id, LastBeside(id), -1, false, ArenaOf(id)});
    return static_cast<int>(plan_.buffers.size()) - 1;
  }

  void AddScratch() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      const bool backward = node.kind == Node::Kind::kBackward;
      plan_.workspace_of.push_back(!node.plan
                                       ? -1
                                       : AddTemporary(id, backward ? node.plan->backward_workspace
                                                                   : node.plan->forward_workspace));
      std::vector<int>& temps = plan_.temp_space_of.emplace_back();
      if (!node.op || node.is_variable()) continue;
      const bool on_host = node.plan && RunsOnHost(*node.plan);
      const std::vector<TShape> shapes =
          ArgumentShapes(graph_, backward ? graph_.nodes[node.forward] : node);
      for (const ResourceRequest& r :
           backward ? node.op->BackwardResource(shapes) : node.op->ForwardResource(shapes)) {
        temps.push_back(r.type != ResourceRequest::kTempSpace      ? MemoryPlan::kNoTempSpace
                        : on_host                                  ? -1
                        : r.bytes == ResourceRequest::kUnknownSize ? MemoryPlan::kUnknownSize
                                                                   : AddTemporary(id, r.bytes));
      }
    }
  }

  void FindRuns() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      const ExecNode& node = graph_.nodes[id];
      bool runs = false;
      for (size_t i = 0; i < node.req.size() && !node.is_variable(); ++i) {
        runs |= node.req[i] != OpReqType::kNullOp && !plan_.aliased[id][i];
      }
      plan_.runs.push_back(runs);
    }
  }

  const ExecGraph& graph_;
  const Strategy strategy_;
  MemoryPlan plan_;
  std::vector<int> base_;    // entry number of output 0 of each node
  std::vector<int> parent_;  // union-find over entries
  std::vector<Life> life_;   // by entry; a root's holds for its set
  std::vector<bool> joined_;
  std::vector<NodeEntry> aliases_, inplace_;
};

}  // namespace

MemoryPlan PlanLifetimes(const ExecGraph& graph, Strategy strategy) {
  return Planner(graph, strategy).Lifetimes();
}

MemoryPlan PlanMemory(const ExecGraph& graph, const BindRequest&, Strategy strategy) {
  MemoryPlan plan = PlanLifetimes(graph, strategy);
  for (int arena = 0; arena < static_cast<int>(plan.arenas.size()); ++arena) {
    ArenaPlan& planned = plan.arenas[arena];
    std::vector<Buffer> buffers = BuffersOf(plan, arena);
    if (strategy == Strategy::kInplace) {
      for (const Buffer& b : buffers) planned.bytes += b.external ? 0 : b.bytes;
    } else {
      const Placement placement = AssignOffsets(&buffers, planned.lower_bound);
      planned.bytes = placement.bytes;
      plan.optimality = std::max(plan.optimality, placement.optimality);
      auto placed = buffers.begin();
      for (Buffer& b : plan.buffers) {
        if (b.arena == arena) b = *placed++;
      }
    }
    plan.arena_bytes += planned.bytes;
  }
  return plan;
}

int64_t NoneBytes(const Graph& graph, const BindRequest& request, Runtime& runtime) {
  const ExecGraph g = AddGradient(Infer(graph, request), request, runtime.operators());
  std::set<NodeEntry> outputs, with_gradient;
  for (int id = 0; id < static_cast<int>(g.nodes.size()); ++id) {
    const ExecNode& node = g.nodes[id];
    if (node.kind == Node::Kind::kForward && !node.backward_pass) {
      for (int i = 0; i < static_cast<int>(node.specs.size()); ++i) outputs.insert({id, i});
    }
    if (node.kind != Node::Kind::kBackward) continue;
    const std::vector<NodeEntry>& targets = g.nodes[node.forward].inputs;
    for (size_t i = 0; i < node.req.size(); ++i) {
      if (node.req[i] != OpReqType::kNullOp) with_gradient.insert(targets[i]);
    }
  }
  for (const NodeEntry& head : g.heads) outputs.erase(head);
  int64_t bytes = 0;
  for (const NodeEntry& e : outputs)
    bytes += g.spec(e).Bytes() * (with_gradient.contains(e) ? 2 : 1);
  return bytes;
}

MemorySummary SummarizeMemory(const Graph& graph, const BindRequest& request, Runtime& runtime) {
  MemorySummary summary;
  summary.none_bytes = NoneBytes(graph, request, runtime);
  const ExecGraph planned = RunPasses(graph, request, runtime);
  summary.inplace_bytes = PlanMemory(planned, request, Strategy::kInplace).arena_bytes;
  summary.share_bytes = PlanMemory(planned, request, Strategy::kShare).arena_bytes;
  const MemoryPlan full = PlanMemory(planned, request, Strategy::kFull);
  summary.full_bytes = full.arena_bytes;
  summary.lower_bound_bytes = full.lower_bound;
  summary.optimality = full.optimality;
  summary.arenas = full.arenas;
  for (const std::vector<int>& requests : full.temp_space_of)
    summary.unsized_requests +=
        static_cast<int>(std::count(requests.begin(), requests.end(), MemoryPlan::kUnknownSize));
  return summary;
}

}  // namespace mxtrain::executor
