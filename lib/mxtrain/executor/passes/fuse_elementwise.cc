// SPDX-License-Identifier: Apache-2.0
// FuseElementwise: fuses operators that need no more than a row of their arrays at a time
// (operator/chain_step.h), and whose intermediates nobody else reads, into one that passes over
// memory once.
//
// In training the fused operator's gradient reads other arrays than the gradients of its parts,
// which may read intermediates. So only operators are fused whose fused gradient reads what some
// gradient reads anyway: then no array lives longer than before, and intermediates are not stored.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "mxtrain/base/json.h"
#include "mxtrain/executor/internal/drawn_as.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/chain_step.h"

namespace mxtrain::executor {
namespace {

constexpr size_t kMostSteps = 16, kMostArguments = 64;

using Entry = std::pair<int, int>;  // node, output
Entry KeyOf(NodeEntry e) {
  return {e.node, e.index};
}

class ElementwiseFuser {
 public:
  ElementwiseFuser(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph),
        request_(request),
        runtime_(runtime),
        rewriter_(graph),
        readers_(graph.nodes.size()),
        varies_(graph.nodes.size()),
        taken_(graph.nodes.size()),
        reduced_(graph.nodes.size()),
        counts_(CountReaders(graph)) {
    for (size_t id = 0; id < graph.nodes.size(); ++id) {
      const ExecNode& node = graph.nodes[id];
      varies_[id] = node.is_variable() && request.inputs.contains(node.name);
      for (const NodeEntry& e : node.inputs) {
        if (!e) continue;
        readers_[e.node].push_back(static_cast<int>(id));
        if (varies_[e.node]) varies_[id] = true;
        if (reduced_[e.node] && graph.spec(e).shape == node.specs[0].shape) reduced_[id] = true;
      }
      if (node.op && ChainStepOf(*node.op) == ChainStep::kReduction) reduced_[id] = true;
    }
    if (request.needs_backward()) FindKept();
  }

  // Of the operators that could be fused with `id` behind them, the first are skipped until the
  // rest can.
  ExecGraph Run() {
    for (int id = static_cast<int>(graph_.nodes.size()); id-- > 0;) {
      std::vector<int> group = GroupThatEndsAt(id);
      for (; group.size() >= 2; group.erase(group.begin())) {
        std::optional<ExecNode> fused = Fused(group);
        if (!fused) continue;
        for (int member : group) taken_[member] = true;
        fused_.emplace(id, std::move(*fused));
        break;
      }
    }
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      rewriter_.Keep(id);
      const auto found = fused_.find(id);
      if (found == fused_.end()) continue;
      ExecNode& fused = found->second;
      for (NodeEntry& e : fused.inputs) e = rewriter_.Map(e);
      rewriter_.Redirect({id, 0}, {rewriter_.Add(std::move(fused)), 0});
    }
    return rewriter_.Finish();
  }

 private:
  // Entries that some gradient reads.
  void FindKept() {
    const auto wanted = WantedGradients(graph_, request_);
    for (size_t id = 0; id < graph_.nodes.size(); ++id) {
      const ExecNode& node = graph_.nodes[id];
      if (node.kind != Node::Kind::kForward ||
          std::find(wanted[id].begin(), wanted[id].end(), true) == wanted[id].end())
        continue;
      std::vector<int> heads, in, out;
      int number = 0;
      for (int i = 0; i < node.num_outputs(); ++i) heads.push_back(number++);
      for (int i = 0; i < node.num_args; ++i) in.push_back(number++);
      for (int i = 0; i < node.num_outputs(); ++i) out.push_back(number++);
      for (int read : node.op->DeclareBackwardDependency(heads, in, out)) {
        const int outputs = node.num_outputs();
        if (read >= outputs + node.num_args)
          kept_.insert({static_cast<int>(id), read - outputs - node.num_args});
        else if (read >= outputs)
          kept_.insert(KeyOf(node.inputs[read - outputs]));
      }
    }
  }

  bool Fits(int id) const {
    const ExecNode& node = graph_.nodes[id];
    if (node.kind != Node::Kind::kForward || taken_[id]) return false;
    const ChainStep step = ChainStepOf(*node.op);
    const bool one_result = node.op->NumVisibleOutputs() == 1 && !ShowsMore(id);
    if (step == ChainStep::kNone || !one_result || node.num_aux() > 0 ||
        !node.op->ForwardIdentityOption().empty())
      return false;
    for (int i = 0; i < node.num_args; ++i) {
      const TensorSpec& spec = graph_.spec(node.inputs[i]);
      if (spec.type != node.specs[0].type || spec.shape.ndim() != node.specs[0].shape.ndim())
        return false;
      if (request_.needs_backward() && !node.op->HasGradient(i)) return false;
    }
    return true;
  }

  // Whether an output other than the first is read.
  bool ShowsMore(int id) const {
    const std::vector<int>& readers = counts_[id];
    return std::any_of(readers.begin() + 1, readers.end(), [](int n) { return n > 0; });
  }

  // Of an operator: the shape of what its steps pass over.
  const TShape& WholeOf(int id) const {
    const ExecNode& node = graph_.nodes[id];
    return ChainStepOf(*node.op) == ChainStep::kReduction ? graph_.spec(node.inputs[0]).shape
                                                          : node.specs[0].shape;
  }

  bool Draws(int id) const { return ChainStepOf(*graph_.nodes[id].op) == ChainStep::kDropout; }

  // Whether all readers of the node's result are members, and it is not monitored.
  bool IsInside(int id, const std::vector<int>& members) const {
    for (const NodeEntry& head : graph_.heads) {
      if (head.node == id) return false;
    }
    const auto member = [&](int reader) {
      return std::find(members.begin(), members.end(), reader) != members.end();
    };
    return std::all_of(readers_[id].begin(), readers_[id].end(), member) &&
           std::find(request_.monitored.begin(), request_.monitored.end(), graph_.nodes[id].name) ==
               request_.monitored.end();
  }

  // Members in topological order; the last has the shape of the whole, the others too or that of
  // numbers of its rows. No path leaves the group and re-enters: all readers of intermediates are
  // inside.
  std::vector<int> GroupThatEndsAt(int last) const {
    if (!Fits(last) || WholeOf(last) != graph_.nodes[last].specs[0].shape) return {};
    const TShape& whole = graph_.nodes[last].specs[0].shape;
    std::vector<int> members{last};
    bool draws = Draws(last);
    for (bool grown = true; grown;) {
      grown = false;
      for (size_t m = 0; m < members.size(); ++m) {
        for (const NodeEntry& e : graph_.nodes[members[m]].inputs) {
          const bool known = std::find(members.begin(), members.end(), e.node) != members.end();
          if (known || members.size() >= kMostSteps || !Fits(e.node) || !IsInside(e.node, members))
            continue;
          if (varies_[e.node] != varies_[last])
            continue;  // what depends only on parameters is not computed in every run
          if (graph_.nodes[e.node].group != graph_.nodes[last].group) continue;
          if (WholeOf(e.node) != whole && !IsOfRows(e.node, whole)) continue;
          if (draws && Draws(e.node)) continue;  // a chain has the random numbers of one operator
          draws |= Draws(e.node);
          members.push_back(e.node);
          grown = true;
        }
      }
    }
    std::sort(members.begin(), members.end());
    return members;
  }

  // Whether the result follows from a reduction and has one element for each of the leading indices
  // of `whole`.
  bool IsOfRows(int id, const TShape& whole) const {
    const TShape& shape = graph_.nodes[id].specs[0].shape;
    int axis = 0;
    while (axis < whole.ndim() && shape[axis] == whole[axis]) ++axis;
    return reduced_[id] && shape.Product(axis, shape.ndim()) == 1;
  }

  // The group's external inputs, each entry once.
  std::vector<NodeEntry> ArgumentsOf(const std::vector<int>& group) const {
    std::vector<NodeEntry> arguments;
    for (int id : group) {
      for (const NodeEntry& e : graph_.nodes[id].inputs) {
        const bool inside = std::binary_search(group.begin(), group.end(), e.node);
        if (!inside && std::find(arguments.begin(), arguments.end(), e) == arguments.end())
          arguments.push_back(e);
      }
    }
    return arguments;
  }

  // Whether another operator reads it, maybe in a layout of its own.
  bool IsSharedImage(NodeEntry e, const std::vector<int>& group) const {
    const auto other = [&](int reader) {
      return !std::binary_search(group.begin(), group.end(), reader);
    };
    return graph_.spec(e).shape.ndim() >= 4 &&
           std::any_of(readers_[e.node].begin(), readers_[e.node].end(), other);
  }

  // Whether the arrays that the fused operator's gradient reads are variables or kept anyway, in
  // the layout in which it reads them: with a Dropout or reductions that is the plain one.
  bool KeepsNothingNew(const ExecNode& fused, const std::vector<int>& group) const {
    if (!request_.needs_backward()) return true;
    std::vector<int> in_data;
    for (int i = 0; i < fused.num_args; ++i) in_data.push_back(i);
    const int out = fused.num_args;
    const std::vector<int> reads = fused.op->DeclareBackwardDependency({out + 1}, in_data, {out});
    const int last = group.back();
    const bool plain = std::any_of(group.begin(), group.end(), [&](int id) {
      return ChainStepOf(*graph_.nodes[id].op) != ChainStep::kElementwise;
    });
    return std::all_of(reads.begin(), reads.end(), [&](int id) {
      if (id > out) return true;
      const NodeEntry e = id == out ? NodeEntry{last, 0} : fused.inputs[id];
      if (graph_.nodes[e.node].is_variable()) return true;
      return kept_.contains(KeyOf(e)) && !(id < out && plain && IsSharedImage(e, group));
    });
  }

  // Repeated arguments and reductions cost a chain about as much as the traffic that it saves; a
  // Dropout in the chain saves its mask too (decision 0067).
  bool Pays(const std::vector<int>& group) const {
    const TShape& whole = graph_.nodes[group.back()].specs[0].shape;
    const auto draws = [&](int id) { return request_.is_train && Draws(id); };
    const auto of_one_shape = [&](int id) {
      const ExecNode& node = graph_.nodes[id];
      return node.specs[0].shape == whole &&
             std::all_of(node.inputs.begin(), node.inputs.end(),
                         [&](const NodeEntry& e) { return graph_.spec(e).shape == whole; });
    };
    return std::any_of(group.begin(), group.end(), draws) ||
           std::all_of(group.begin(), group.end(), of_one_shape);
  }

  // A fused operator reads all arguments together, and gives all their gradients together. While
  // arguments are computed, one after another, they must not take more memory than what is held
  // meanwhile if the members are apart: arguments that are read later, and results of members. The
  // same holds for gradients, in reverse. In inference what somebody else reads later is held
  // anyway.
  bool WaitsForNothing(const std::vector<int>& group,
                       const std::vector<NodeEntry>& arguments) const {
    const int latest = std::max_element(arguments.begin(), arguments.end())->node;
    const auto is_member = [&](int id) {
      return std::binary_search(group.begin(), group.end(), id);
    };
    // The last node that reads it, of the group or another.
    const auto last_reader = [&](int id, bool member) {
      int last = -1;
      for (const int reader : readers_[id]) last = is_member(reader) == member ? reader : last;
      return last;
    };
    std::vector<NodeEntry> waiting;
    std::copy_if(arguments.begin(), arguments.end(), std::back_inserter(waiting),
                 [&](const NodeEntry& e) {
                   return !graph_.nodes[e.node].is_variable() &&
                          (request_.needs_backward() || last_reader(e.node, false) < latest);
                 });
    std::vector<int> positions;
    for (const NodeEntry& e : waiting) positions.push_back(e.node);
    for (const int id : group) positions.push_back(id);
    return std::all_of(positions.begin(), positions.end(), [&](int at) {
      if (at > latest) return true;
      int64_t fused = 0, apart = 0;
      for (const NodeEntry& e : waiting) {
        if (e.node > at) continue;
        fused += graph_.spec(e).Bytes();
        if (last_reader(e.node, true) > at || last_reader(e.node, false) > at)
          apart += graph_.spec(e).Bytes();
      }
      for (const int id : group) {
        if (id <= at && last_reader(id, true) > at) apart += graph_.nodes[id].specs[0].Bytes();
      }
      return fused <= apart;
    });
  }

  bool HasGradient(int id) const {
    if (!graph_.nodes[id].is_variable()) return true;
    const auto req = request_.grad_req.find(graph_.nodes[id].name);
    return req != request_.grad_req.end() && req->second != GradReq::kNull;
  }

  // Producers of the inputs whose gradient is that of the operator's result: those of additions.
  std::vector<int> SharersOf(int id) const {
    std::vector<int> inputs;
    for (const InplacePair& pair : graph_.nodes[id].op->BackwardIdentityOption()) {
      const NodeEntry input = graph_.nodes[id].inputs[pair.to];
      if (graph_.spec(input).shape == graph_.nodes[id].specs[0].shape) inputs.push_back(input.node);
    }
    return inputs;
  }

  // Arguments whose gradient is that of the result of this member. Outside of a chain they share
  // its bytes.
  int SharersOfGradient(int id, const std::vector<int>& group) const {
    int sharers = 0;
    for (const int input : SharersOf(id)) {
      const bool inside = std::binary_search(group.begin(), group.end(), input);
      if (!inside) sharers += HasGradient(input) ? 1 : 0;
      if (inside && readers_[input].size() == 1) sharers += SharersOfGradient(input, group);
    }
    return sharers;
  }

  // Whether the gradients of a chain's arguments share bytes as those of its parts do: where they
  // are the head gradient.
  bool GradientsShare(const std::vector<int>& group) const {
    if (!request_.needs_backward()) return true;
    std::vector<int> passed{group.back()};  // members whose gradient is the head gradient
    for (size_t k = 0; k < passed.size(); ++k) {
      for (const int input : SharersOf(passed[k])) {
        if (std::binary_search(group.begin(), group.end(), input) && readers_[input].size() == 1)
          passed.push_back(input);
      }
    }
    return std::all_of(group.begin(), group.end(), [&](int id) {
      return std::find(passed.begin(), passed.end(), id) != passed.end() ||
             SharersOfGradient(id, group) < 2;
    });
  }

  // The group as one operator whose inputs are entries of the old graph, if a kernel takes it.
  std::optional<ExecNode> Fused(const std::vector<int>& group) const {
    const std::vector<NodeEntry> arguments = ArgumentsOf(group);
    if (arguments.empty() || arguments.size() > kMostArguments || !Pays(group) ||
        !WaitsForNothing(group, arguments) || !GradientsShare(group))
      return std::nullopt;
    const auto number_of = [&](NodeEntry e) {
      const auto argument = std::find(arguments.begin(), arguments.end(), e);
      if (argument != arguments.end()) return argument - arguments.begin();
      return static_cast<std::ptrdiff_t>(arguments.size()) +
             (std::lower_bound(group.begin(), group.end(), e.node) - group.begin());
    };
    Json steps = Json::array();
    ExecNode fused(graph_.nodes[group.back()]);
    fused.origins.clear();
    for (int id : group) {
      const ExecNode& node = graph_.nodes[id];
      Json params = Json::object(), in = Json::array();
      for (const auto& [key, value] : node.op->GetParams()) params[key] = value;
      for (const NodeEntry& e : node.inputs) in.push_back(number_of(e));
      steps.push_back({{"op", node.op->TypeString()}, {"params", params}, {"in", in}});
      fused.origins.push_back(node.name);
      if (Draws(id)) fused.attrs[kDrawnAs] = node.name;
    }
    fused.op = runtime_.operators().Create(
        "_ElementwiseChain",
        {{"num_args", std::to_string(arguments.size())}, {"steps", steps.dump()}});
    fused.specs = {graph_.nodes[group.back()].specs[0]};
    fused.req.assign(1, OpReqType::kWriteTo);
    fused.adds_to.assign(1, NodeEntry{});
    fused.inputs = arguments;
    fused.num_args = static_cast<int>(arguments.size());
    if (!KeepsNothingNew(fused, group)) return std::nullopt;

    const std::vector<std::optional<Layout>> layouts(arguments.size());
    std::vector<OpReqType> grad_req;
    if (request_.needs_backward()) grad_req.assign(arguments.size(), OpReqType::kWriteTo);
    const std::vector<const KernelEntry*> entries =
        runtime_.operators().Kernels("_ElementwiseChain", fused.ctx.type);
    if (entries.empty() ||
        !PlanNode(graph_, fused, request_, runtime_, layouts, grad_req, entries[0]->name.c_str()))
      return std::nullopt;
    return fused;
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  Rewriter rewriter_;
  std::vector<std::vector<int>> readers_;  // of each node
  std::vector<bool> varies_;               // depends on an input, so it changes from run to run
  std::vector<bool> taken_;
  std::vector<bool> reduced_;                   // a reduction, or computed from one of this shape
  const std::vector<std::vector<int>> counts_;  // of readers of each entry
  std::set<Entry> kept_;
  std::map<int, ExecNode> fused_;  // by the last node
};

}  // namespace

ExecGraph FuseElementwise(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!runtime.operators().Has("_ElementwiseChain")) return graph;
  return ElementwiseFuser(graph, request, runtime).Run();
}

}  // namespace mxtrain::executor
