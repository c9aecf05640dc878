// SPDX-License-Identifier: Apache-2.0
// FinalizePlans: plans the kernels chosen by ChooseLayouts again, now with the requests of the
// backward pass. A sum of gradients becomes kAddTo where the kernels accumulate; adds saved
// buffers, the arrays that each backward really reads, and inputs in a second layout. An output
// that nobody reads, such as the mask of Dropout, is not requested.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

class PlanFinalizer {
 public:
  PlanFinalizer(ExecGraph graph, const BindRequest& request, Runtime& runtime)
      : old_(std::move(graph)),
        request_(request),
        runtime_(runtime),
        backward_of_(old_.nodes.size(), -1),
        plans_(old_.nodes.size()),
        redirect_(old_.nodes.size()) {
    for (int id = 0; id < static_cast<int>(old_.nodes.size()); ++id) {
      if (old_.nodes[id].kind == Node::Kind::kBackward) backward_of_[old_.nodes[id].forward] = id;
    }
  }

  ExecGraph Run() {
    ApplyAddRequests();
    MergeSums();
    for (int id = 0; id < static_cast<int>(old_.nodes.size()); ++id) {
      if (backward_of_[id] < 0) continue;
      const auto plan = Replan(id);
      if (!plan) {
        Throw(ErrorKind::kBug, "{}: kernel {} declines what it accepted before: {}",
              Describe(old_.nodes[id]), old_.nodes[id].plan->kernel, plan.error().reason);
      }
      plans_[id] = *plan;
    }
    return Rebuild();
  }

 private:
  Expected<std::shared_ptr<const Plan>, Refusal> Replan(int forward) {
    const ExecNode& node = old_.nodes[forward];
    std::vector<std::optional<Layout>> offered(node.plan->in.begin(), node.plan->in.end());
    return PlanNode(old_, node, request_, runtime_, offered, old_.nodes[backward_of_[forward]].req,
                    node.plan->kernel);
  }

  // Whether the kernel of this backward output can accumulate; if so, sets its request to kAddTo.
  bool TryAccumulate(NodeEntry gradient) {
    ExecNode& node = old_.nodes[gradient.node];
    if (node.kind != Node::Kind::kBackward) return false;
    OpReqType& req = node.req[gradient.index];
    req = OpReqType::kAddTo;
    const auto plan = Replan(node.forward);
    const ExecNode& forward = old_.nodes[node.forward];
    const bool same = plan && (*plan)->accumulates && (*plan)->in == forward.plan->in &&
                      (*plan)->out == forward.plan->out;
    if (!same) req = OpReqType::kWriteTo;
    return same;
  }

  bool IsIdentity(NodeEntry gradient) const {
    const ExecNode& node = old_.nodes[gradient.node];
    if (node.kind != Node::Kind::kBackward) return false;
    for (const InplacePair& pair : node.op->BackwardIdentityOption()) {
      const NodeEntry head = node.inputs[pair.from];
      if (pair.to == gradient.index && head &&
          old_.spec(head).Bytes() == old_.spec(gradient).Bytes())
        return true;
    }
    return false;
  }

  // grad_req kAdd: the last writer of the gradient adds to the external buffer, or, if it cannot,
  // through a sum with one term.
  void ApplyAddRequests() {
    for (size_t k = 0; k < old_.arguments.size(); ++k) {
      const auto asked = request_.grad_req.find(old_.nodes[old_.arguments[k]].name);
      if (!old_.gradients[k] || asked == request_.grad_req.end() || asked->second != GradReq::kAdd)
        continue;
      NodeEntry& gradient = old_.gradients[k];
      ExecNode& node = old_.nodes[gradient.node];
      if (node.kind == Node::Kind::kForward || node.kind == Node::Kind::kZeros) {
        node.req[gradient.index] = OpReqType::kAddTo;
        continue;
      }
      const ExecNode& variable = old_.nodes[old_.arguments[k]];
      if (node.group == variable.group && TryAccumulate(gradient)) continue;
      ExecNode sum;
      sum.kind = Node::Kind::kForward;
      sum.name = old_.nodes[old_.arguments[k]].name + "_grad_add";
      sum.PlaceBeside(variable);
      sum.op = runtime_.operators().Create("ElementWiseSum", {{"num_args", "1"}});
      sum.inputs = {gradient};
      sum.num_args = 1;
      sum.specs = {old_.spec(gradient)};
      sum.req = {OpReqType::kAddTo};
      sum.adds_to.resize(1);
      sum.backward_pass = true;
      old_.nodes.push_back(std::move(sum));
      gradient = {static_cast<int>(old_.nodes.size()) - 1, 0};
      backward_of_.push_back(-1);
      plans_.emplace_back();
      redirect_.emplace_back();
    }
  }

  // A sum whose later terms can be accumulated onto the earlier ones needs no node.
  void MergeSums() {
    for (int id = std::max(old_.first_backward, 0); id < static_cast<int>(old_.nodes.size());
         ++id) {
      ExecNode& sum = old_.nodes[id];
      if (old_.first_backward < 0 || sum.kind != Node::Kind::kForward ||
          sum.req[0] == OpReqType::kAddTo)
        continue;
      for (NodeEntry& e : sum.inputs) e = Resolve(e);
      std::vector<NodeEntry> rest;
      for (const NodeEntry& term : sum.inputs) {
        const bool onto = !rest.empty() && rest.back().node < term.node &&
                          old_.nodes[rest.back().node].group == old_.nodes[term.node].group &&
                          !IsIdentity(rest.back()) && !IsExternalVariable(rest.back()) &&
                          TryAccumulate(term);
        if (onto) {
          old_.nodes[term.node].adds_to[term.index] = rest.back();
          rest.back() = term;
        } else {
          rest.push_back(term);
        }
      }
      if (rest.size() == 1) {
        redirect_[id] = rest[0];
      } else if (rest.size() < sum.inputs.size()) {
        sum.op = runtime_.operators().Create("ElementWiseSum",
                                             {{"num_args", std::to_string(rest.size())}});
        sum.inputs = rest;
        sum.num_args = static_cast<int>(rest.size());
      }
    }
    for (NodeEntry& e : old_.gradients) e = Resolve(e);
  }

  bool IsExternalVariable(NodeEntry e) const { return old_.nodes[e.node].is_variable(); }
  NodeEntry Resolve(NodeEntry e) const { return e && redirect_[e.node] ? redirect_[e.node] : e; }

  BackwardReads ReadsOf(const ExecNode& forward, const Plan& plan) const {
    if (plan.backward_reads) return *plan.backward_reads;
    const int outputs = forward.op->NumOutputs(), args = forward.num_args;
    std::vector<int> out_grad(outputs), in_data(args), out_data(outputs);
    int next = 0;
    for (auto* ids : {&out_grad, &in_data, &out_data}) {
      for (int& id : *ids) id = next++;
    }
    std::vector<bool> read(next);
    for (int id : forward.op->DeclareBackwardDependency(out_grad, in_data, out_data))
      read[id] = true;
    BackwardReads reads;
    reads.out_grad.assign(read.begin(), read.begin() + outputs);
    reads.in_data.assign(read.begin() + outputs, read.begin() + outputs + args);
    reads.out_data.assign(read.begin() + outputs + args, read.end());
    return reads;
  }

  ExecGraph Rebuild() {
    Rewriter rewriter(old_);
    for (int id = 0; id < static_cast<int>(old_.nodes.size()); ++id) {
      for (NodeEntry& e : old_.nodes[id].inputs) e = Resolve(e);
      for (NodeEntry& e : old_.nodes[id].adds_to) e = Resolve(e);
    }
    for (int id = 0; id < static_cast<int>(old_.nodes.size()); ++id) {
      if (redirect_[id]) continue;
      const ExecNode& node = old_.nodes[id];
      if (node.kind == Node::Kind::kBackward) {
        const int first = static_cast<int>(rewriter.graph().nodes.size());
        AddBackward(id, &rewriter);
        for (int k = first; k < static_cast<int>(rewriter.graph().nodes.size()); ++k)
          rewriter.graph().nodes[k].backward_pass = true;
        continue;
      }
      const int now = rewriter.Keep(id);
      ExecNode& kept = rewriter.graph().nodes[now];
      if (plans_[id]) {
        kept.plan = plans_[id];
        for (int64_t bytes : plans_[id]->saved) {
          kept.specs.push_back({TShape{bytes}, DType::kUint8, Layout()});
          kept.req.push_back(OpReqType::kWriteTo);
          kept.adds_to.emplace_back();
        }
      } else if (node.kind == Node::Kind::kForward && !node.plan) {
        std::vector<std::optional<Layout>> offered;
        for (const NodeEntry& e : kept.inputs) offered.push_back(rewriter.spec(e).layout);
        const auto plan = PlanNode(rewriter.graph(), kept, request_, runtime_, offered, {});
        if (!plan)
          Throw(ErrorKind::kBug, "{}: no kernel sums these gradients: {}", Describe(kept),
                plan.error().reason);
        kept.plan = *plan;
        MXTRAIN_ASSERT(kept.plan->out[0] == kept.specs[0].layout);
      }
    }
    return rewriter.Finish();
  }

  void AddBackward(int id, Rewriter* rewriter) {
    const ExecNode& old = old_.nodes[id];
    const Plan& plan = *plans_[old.forward];
    const ExecNode& forward = old_.nodes[old.forward];
    const BackwardReads reads = ReadsOf(forward, plan);
    const int outputs = forward.op->NumOutputs(), args = forward.num_args;

    ExecNode node(old);
    node.plan = plans_[old.forward];
    for (NodeEntry& e : node.inputs) e = rewriter->Map(e);
    for (NodeEntry& e : node.adds_to) e = rewriter->Map(e);
    for (int i = 0; i < outputs; ++i) {
      if (!reads.out_grad[i]) node.inputs[i] = {};
      if (!reads.out_data[i]) node.inputs[outputs + args + i] = {};
    }
    for (int i = 0; i < args; ++i) {
      NodeEntry& e = node.inputs[outputs + i];
      if (!reads.in_data[i]) {
        e = {};
      } else if (!plan.backward_in.empty() && plan.backward_in[i]) {
        e = rewriter->Reordered(e, *plan.backward_in[i]);
      }
    }
    const NodeEntry forward_now = rewriter->Map({old.forward, 0});
    node.forward = forward_now.node;
    for (size_t k = 0; k < plan.saved.size(); ++k)
      node.inputs.push_back({forward_now.node, outputs + static_cast<int>(k)});
    const int now = rewriter->Add(std::move(node));
    for (int i = 0; i < args; ++i) rewriter->Redirect({id, i}, {now, i});
  }

  ExecGraph old_;
  const BindRequest& request_;
  Runtime& runtime_;
  std::vector<int> backward_of_;                    // [forward node]; -1: none
  std::vector<std::shared_ptr<const Plan>> plans_;  // final, of forward nodes with a backward
  std::vector<NodeEntry> redirect_;                 // [removed sum node]: its replacement
};

// Of the forward pass. Every output of a monitored node counts as read.
void DropUnreadRequests(const BindRequest& request, ExecGraph* graph) {
  const std::vector<std::vector<int>> readers = CountReaders(*graph);
  const auto& monitored = request.monitored;
  for (size_t id = 0; id < graph->nodes.size(); ++id) {
    ExecNode& node = graph->nodes[id];
    if (node.kind != Node::Kind::kForward || node.backward_pass ||
        std::find(monitored.begin(), monitored.end(), node.name) != monitored.end())
      continue;
    const auto begin = readers[id].begin(), end = begin + node.num_outputs();
    if (std::all_of(begin, end, [](int count) { return count == 0; })) continue;
    for (int i = 0; i < node.num_outputs(); ++i) {
      if (readers[id][i] == 0) node.req[i] = OpReqType::kNullOp;
    }
  }
}

}  // namespace

ExecGraph FinalizePlans(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  ExecGraph result = PlanFinalizer(std::move(graph), request, runtime).Run();
  DropUnreadRequests(request, &result);
  return result;
}

}  // namespace mxtrain::executor
