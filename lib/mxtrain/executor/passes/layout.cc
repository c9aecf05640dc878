// SPDX-License-Identifier: Apache-2.0
// ChooseLayouts: the kernel of each forward node and with it the layouts of its arrays; if a kernel
// needs an array in another layout, a reorder. A parameter's canonical layout is the one its first
// reader wants (plain if that is a derived layout), or, if that reader takes it in a narrower type,
// the layout of the gradient. Inputs and heads are plain.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/device/derived_layout.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

bool DrawsRandomNumbers(const ExecGraph& graph, const ExecNode& node) {
  if (node.kind != Node::Kind::kForward) return false;
  const auto requests = node.op->ForwardResource(ArgumentShapes(graph, node));
  return std::any_of(requests.begin(), requests.end(),
                     [](const ResourceRequest& r) { return r.type == ResourceRequest::kRandom; });
}

// Marks nodes that depend only on parameters. Only without a backward pass, where parameters do not
// change every step. Heads, and nodes that read them, are written by every run.
void MarkPrecomputed(ExecGraph* graph, const BindRequest& request) {
  if (request.needs_backward() || request.is_train) return;
  std::vector<bool> constant(graph->nodes.size()), head(graph->nodes.size());
  for (const NodeEntry& e : graph->heads) head[e.node] = true;
  for (size_t id = 0; id < graph->nodes.size(); ++id) {
    ExecNode& node = graph->nodes[id];
    if (node.is_variable()) {
      constant[id] = !request.inputs.contains(node.name);
      continue;
    }
    constant[id] = !head[id] && !node.inputs.empty() && !DrawsRandomNumbers(*graph, node) &&
                   std::all_of(node.inputs.begin(), node.inputs.end(),
                               [&](const NodeEntry& e) { return constant[e.node]; });
    node.precomputed = constant[id];
  }
}

class LayoutChooser {
 public:
  LayoutChooser(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : old_(graph),
        request_(request),
        runtime_(runtime),
        wanted_(WantedGradients(graph, request)),
        rewriter_(graph) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(old_.nodes.size()); ++id) {
      const ExecNode& node = old_.nodes[id];
      if (node.is_variable()) {
        AddVariable(id);
      } else if (node.kind == Node::Kind::kReorder) {
        SetOpen(rewriter_.Keep(id), true);  // created by CastForAmp
      } else {
        AddOperator(id);
      }
    }
    for (const NodeEntry& head : old_.heads) {
      const NodeEntry now = rewriter_.Map(head);
      if (!IsOpen(now)) rewriter_.Redirect(head, rewriter_.Reordered(now, Layout()));
    }
    return rewriter_.Finish();
  }

 private:
  bool IsOpen(NodeEntry e) const {
    return e.node < static_cast<int>(open_.size()) && open_[e.node];
  }
  void SetOpen(int node, bool open) {
    open_.resize(std::max(open_.size(), static_cast<size_t>(node) + 1));
    open_[node] = open;
  }
  void SetLayout(NodeEntry e, Layout layout) {
    rewriter_.graph().nodes[e.node].specs[0].layout = layout;
    SetOpen(e.node, false);
  }

  void AddVariable(int id) {
    const ExecNode& node = old_.nodes[id];
    const int now = rewriter_.Keep(id);
    const auto given = request_.layouts.find(node.name);
    if (given != request_.layouts.end()) {
      SetLayout({now, 0}, given->second);
    } else {
      SetOpen(now, node.kind == Node::Kind::kVariable && !request_.inputs.contains(node.name));
    }
  }

  void AddOperator(int id) {
    ExecNode node = old_.nodes[id];
    for (NodeEntry& e : node.inputs) e = rewriter_.Map(e);
    node.plan = PlanOf(node, wanted_[id]);
    for (int i = 0; i < node.num_args; ++i) {
      if (IsOpen(node.inputs[i])) Decide(node.inputs[i], *node.plan, i);
      node.inputs[i] = rewriter_.Reordered(node.inputs[i], node.plan->in[i]);
    }
    CheckAuxiliaries(node);
    for (size_t i = 0; i < node.plan->out.size(); ++i) node.specs[i].layout = node.plan->out[i];
    const int added = rewriter_.Add(std::move(node));
    for (size_t i = 0; i < old_.nodes[id].specs.size(); ++i)
      rewriter_.Redirect({id, static_cast<int>(i)}, {added, static_cast<int>(i)});
  }

  // Of the best kernel for the layouts that are fixed. `wanted`: arguments that get a gradient.
  std::shared_ptr<const Plan> PlanOf(const ExecNode& node, const std::vector<bool>& wanted) {
    std::vector<std::optional<Layout>> offered(node.num_args);
    for (int i = 0; i < node.num_args; ++i) {
      if (!IsOpen(node.inputs[i])) offered[i] = rewriter_.spec(node.inputs[i]).layout;
    }
    std::vector<OpReqType> grad_req;
    if (std::find(wanted.begin(), wanted.end(), true) != wanted.end()) {
      for (bool want : wanted) grad_req.push_back(want ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    const auto found = PlanNode(rewriter_.graph(), node, request_, runtime_, offered, grad_req);
    if (!found)
      Throw(ErrorKind::kConfig, "{}: its reference kernel declines: {}", Describe(node),
            found.error().reason);
    MXTRAIN_ASSERT(static_cast<int>((*found)->in.size()) == node.num_args);
    MXTRAIN_ASSERT(static_cast<int>((*found)->out.size()) == node.op->NumOutputs());
    return *found;
  }

  // Fixes the canonical layout of an open entry for its first reader, which has it as this
  // argument; of a conversion, that of the converted variable too.
  void Decide(NodeEntry e, const Plan& plan, int argument) {
    const Layout wanted = plan.in[argument], canonical = Derived(wanted) ? Layout() : wanted;
    SetLayout(e, canonical);
    const ExecNode& source = rewriter_.graph().nodes[e.node];
    if (source.kind != Node::Kind::kReorder || !IsOpen(source.inputs[0])) return;
    const bool has_own = !plan.grad_layout.empty() && plan.grad_layout[argument];
    SetLayout(source.inputs[0], has_own ? plan.grad_layout[argument]->layout : canonical);
  }

  void CheckAuxiliaries(const ExecNode& node) const {
    for (int i = node.num_args; i < static_cast<int>(node.inputs.size()); ++i) {
      const Layout asked = node.plan->aux.empty() ? Layout() : node.plan->aux[i - node.num_args];
      if (asked == rewriter_.spec(node.inputs[i]).layout) continue;
      Throw(ErrorKind::kBug,
            "{}: kernel {} needs an auxiliary state in layout {}; only plain ones are supported",
            Describe(node), node.plan->kernel, asked.Name());
    }
  }

  const ExecGraph& old_;
  const BindRequest& request_;
  Runtime& runtime_;
  const std::vector<std::vector<bool>> wanted_;
  Rewriter rewriter_;
  // [new node]: a variable, or its conversion to another type, whose layout its first reader
  // chooses.
  std::vector<bool> open_;
};

}  // namespace

ExecGraph ChooseLayouts(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  ExecGraph result = LayoutChooser(graph, request, runtime).Run();
  MarkPrecomputed(&result, request);
  return result;
}

}  // namespace mxtrain::executor
