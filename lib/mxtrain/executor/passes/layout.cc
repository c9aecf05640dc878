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

}  // namespace

ExecGraph ChooseLayouts(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  const auto wanted = WantedGradients(graph, request);
  Rewriter rewriter(graph);
  std::vector<bool> open;  // [new node]: a variable, or its conversion to another type, whose
                           // layout its first reader chooses
  auto is_open = [&open](NodeEntry e) {
    return e.node < static_cast<int>(open.size()) && open[e.node];
  };
  const auto set_layout = [&](NodeEntry e, Layout layout) {
    rewriter.graph().nodes[e.node].specs[0].layout = layout;
    open[e.node] = false;
  };

  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    const int now = rewriter.Keep(id);
    ExecNode node = rewriter.graph().nodes[now];
    open.resize(now + 1);
    if (node.is_variable()) {
      const auto given = request.layouts.find(node.name);
      if (given != request.layouts.end()) {
        rewriter.graph().nodes[now].specs[0].layout = given->second;
      } else {
        open[now] = node.kind == Node::Kind::kVariable && !request.inputs.contains(node.name);
      }
      continue;
    }
    if (node.kind == Node::Kind::kReorder) {  // created by CastForAmp
      open[now] = true;
      continue;
    }
    rewriter.graph().nodes.pop_back();

    std::vector<std::optional<Layout>> offered(node.num_args);
    for (int i = 0; i < node.num_args; ++i) {
      if (!is_open(node.inputs[i])) {
        offered[i] = rewriter.spec(node.inputs[i]).layout;
      }
    }
    std::vector<OpReqType> grad_req;
    if (std::find(wanted[id].begin(), wanted[id].end(), true) != wanted[id].end()) {
      for (bool want : wanted[id])
        grad_req.push_back(want ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    const auto found = PlanNode(rewriter.graph(), node, request, runtime, offered, grad_req);
    if (!found)
      Throw(ErrorKind::kConfig, "{}: its reference kernel declines: {}", Describe(node),
            found.error().reason);
    node.plan = *found;
    const Plan& plan = *node.plan;
    MXTRAIN_ASSERT(static_cast<int>(plan.in.size()) == node.num_args);
    MXTRAIN_ASSERT(static_cast<int>(plan.out.size()) == node.op->NumOutputs());
    for (int i = 0; i < node.num_args; ++i) {
      NodeEntry& e = node.inputs[i];
      if (is_open(e)) {
        const Layout canonical = Derived(plan.in[i]) ? Layout() : plan.in[i];
        set_layout(e, canonical);
        const ExecNode& source = rewriter.graph().nodes[e.node];
        const bool converted = source.kind == Node::Kind::kReorder;
        const bool foreign = !plan.grad_form.empty() && plan.grad_form[i];
        if (converted && is_open(source.inputs[0]))
          set_layout(source.inputs[0], foreign ? plan.grad_form[i]->layout : canonical);
      }
      e = rewriter.Reordered(e, plan.in[i]);
    }
    for (int i = node.num_args; i < static_cast<int>(node.inputs.size()); ++i) {
      const Layout asked = plan.aux.empty() ? Layout() : plan.aux[i - node.num_args];
      if (!(asked == rewriter.spec(node.inputs[i]).layout)) {
        Throw(ErrorKind::kBug,
              "{}: kernel {} needs an auxiliary state in layout {}; only plain ones are supported",
              Describe(node), plan.kernel, asked.Name());
      }
    }
    for (size_t i = 0; i < plan.out.size(); ++i) node.specs[i].layout = plan.out[i];
    const int added = rewriter.Add(std::move(node));
    for (size_t i = 0; i < graph.nodes[id].specs.size(); ++i)
      rewriter.Redirect({id, static_cast<int>(i)}, {added, static_cast<int>(i)});
  }
  for (const NodeEntry& head : graph.heads) {
    const NodeEntry now = rewriter.Map(head);
    if (!is_open(now)) rewriter.Redirect(head, rewriter.Reordered(now, Layout()));
  }
  ExecGraph result = rewriter.Finish();
  MarkPrecomputed(&result, request);
  return result;
}

}  // namespace mxtrain::executor
