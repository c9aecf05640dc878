// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/internal/order.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/operator/host_kernel.h"

namespace mxtrain::executor {

bool BindRequest::needs_backward() const {
  for (const auto& [name, req] : grad_req) {
    if (req != GradReq::kNull) return true;
  }
  return false;
}

std::vector<Context> BindRequest::devices() const {
  std::vector<Context> devices{ctx};
  for (const auto& [group, device] : group2ctx) {
    if (std::find(devices.begin(), devices.end(), device) == devices.end())
      devices.push_back(device);
  }
  return devices;
}

std::string Describe(const Node& node) {
  const std::string op = node.op ? node.op->TypeString() + " " : "";
  return node.where.empty() ? format("{}'{}'", op, node.name)
                            : format("{}'{}' ({})", op, node.name, node.where);
}

namespace {

// A PlanRequest and the storage of its spans.
struct NodeRequest {
  NodeRequest(const ExecGraph& graph, const ExecNode& node, const BindRequest& request,
              Runtime& runtime, std::span<const std::optional<Layout>> in_layout,
              std::span<const OpReqType> grad_req)
      : out(node.specs.begin(), node.specs.begin() + node.op->NumOutputs()) {
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i)
      (i < node.num_args ? in : aux).push_back(graph.spec(node.inputs[i]));
    aux_layout.assign(aux.size(), Layout());
    out_req.assign(out.size(), OpReqType::kWriteTo);
    plan.ctx = node.ctx;
    plan.is_train = request.is_train;
    plan.needs_backward = !grad_req.empty();
    plan.deterministic = request.deterministic;
    plan.math = request.math;
    plan.threads = runtime.backend(node.ctx).threads();
    plan.in = in;
    plan.out = out;
    plan.aux = aux;
    plan.in_layout = in_layout;
    plan.aux_layout = aux_layout;
    plan.out_req = out_req;
    plan.grad_req = grad_req;
  }
  NodeRequest(const NodeRequest&) = delete;

  std::vector<TensorSpec> in, out, aux;
  std::vector<std::optional<Layout>> aux_layout;
  std::vector<OpReqType> out_req;
  PlanRequest plan;
};

}  // namespace

Expected<std::shared_ptr<const Plan>, Refusal> PlanNode(
    const ExecGraph& graph, const ExecNode& node, const BindRequest& request, Runtime& runtime,
    std::span<const std::optional<Layout>> in_layout, std::span<const OpReqType> grad_req,
    const char* kernel) {
  const NodeRequest r(graph, node, request, runtime, in_layout, grad_req);
  Backend& backend = runtime.backend(node.ctx);
  try {
    const auto entries = runtime.operators().Kernels(node.op->TypeString(), node.ctx.type);
    if (!kernel && request.reference_kernels && !entries.empty())
      kernel = entries.back()->name.c_str();
    const HostPlanOptions on_host{.writes_aux = request.is_train,
                                  .reference = request.reference_kernels};
    if (!kernel)
      return std::make_shared<const Plan>(PlanOnDevice(*node.op, r.plan, runtime, on_host));
    if (kernel == std::string_view(kHostKernel)) {
      auto plan = PlanOnHost(*node.op, r.plan, runtime, on_host);
      if (!plan) return plan.error();
      return std::make_shared<const Plan>(std::move(*plan));
    }
    for (const KernelEntry* entry : entries) {
      if (entry->name != kernel) continue;
      auto plan = entry->plan(*node.op, r.plan, backend);
      if (!plan) return plan.error();
      plan->kernel = entry->name.c_str();
      return std::make_shared<const Plan>(std::move(*plan));
    }
  } catch (const Error&) {
    RethrowWithPrefix(std::current_exception(), Describe(node));
  }
  return Refusal{format("this operator has no kernel '{}'", kernel)};
}

void SetOutputTypes(const ExecGraph& graph, ExecNode* node) {
  std::vector<DType> in, aux, out(node->specs.size(), DType::kUnknown);
  for (int i = 0; i < static_cast<int>(node->inputs.size()); ++i)
    (i < node->num_args ? in : aux).push_back(graph.spec(node->inputs[i]).type);
  node->op->InferType(&in, &out, &aux);
  for (size_t i = 0; i < out.size(); ++i) node->specs[i].type = out[i];
}

bool HasKernel(const ExecGraph& graph, const ExecNode& node, const BindRequest& request,
               Runtime& runtime, std::span<const OpReqType> grad_req, bool better) {
  const std::vector<std::optional<Layout>> layouts(node.num_args);
  for (const KernelEntry* entry :
       runtime.operators().Kernels(node.op->TypeString(), node.ctx.type)) {
    if (entry->rank >= kRefRank && better) break;
    if (PlanNode(graph, node, request, runtime, layouts, grad_req, entry->name.c_str()))
      return true;
  }
  return false;
}

std::vector<std::pair<std::string, std::string>> Refusals(const ExecGraph& graph,
                                                          const ExecNode& node,
                                                          const BindRequest& request,
                                                          Runtime& runtime) {
  const std::vector<std::optional<Layout>> layouts(node.plan->in.begin(), node.plan->in.end());
  std::vector<OpReqType> grad_req;
  for (const ExecNode& other : graph.nodes) {
    if (other.kind == Node::Kind::kBackward && &graph.nodes[other.forward] == &node)
      grad_req = other.req;
  }
  const NodeRequest r(graph, node, request, runtime, layouts, grad_req);
  std::vector<std::pair<std::string, std::string>> refusals;
  for (const KernelEntry* entry :
       runtime.operators().Kernels(node.op->TypeString(), node.ctx.type)) {
    if (entry->name == node.plan->kernel) break;
    const auto plan = entry->plan(*node.op, r.plan, runtime.backend(node.ctx));
    if (!plan) refusals.emplace_back(entry->name, plan.error().reason);
  }
  return refusals;
}

namespace {

// Drops nodes that no gradient reaches from above.
void DropUnreached(const ExecGraph& graph, std::vector<std::vector<bool>>* wanted) {
  std::vector<bool> reached(graph.nodes.size());  // some output has a gradient
  for (const NodeEntry& head : graph.heads) reached[head.node] = true;
  for (size_t id = graph.nodes.size(); id-- > 0;) {
    const ExecNode& node = graph.nodes[id];
    const bool needs_head = node.kind != Node::Kind::kForward || node.op->NeedsHeadGradient();
    std::vector<bool>& arguments = (*wanted)[id];
    if (needs_head && !reached[id]) arguments.assign(arguments.size(), false);
    for (size_t i = 0; i < arguments.size(); ++i) {
      if (arguments[i]) reached[node.inputs[i].node] = true;
    }
  }
}

}  // namespace

std::vector<std::vector<bool>> WantedGradients(const ExecGraph& graph, const BindRequest& request) {
  std::vector<std::vector<bool>> wanted(graph.nodes.size());
  // [node]: a variable with a gradient is at or before it.
  std::vector<bool> reaches(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id) {
    const ExecNode& node = graph.nodes[id];
    if (node.kind == Node::Kind::kVariable) {
      const auto found = request.grad_req.find(node.name);
      reaches[id] = found != request.grad_req.end() && found->second != GradReq::kNull;
      continue;
    }
    const int args =
        node.kind == Node::Kind::kForward ? node.num_args : static_cast<int>(node.inputs.size());
    wanted[id].resize(static_cast<size_t>(args));
    for (int i = 0; i < args; ++i) {
      const bool has = node.kind != Node::Kind::kForward || node.op->HasGradient(i);
      wanted[id][i] = has && reaches[node.inputs[i].node];
      if (wanted[id][i]) reaches[id] = true;
    }
  }
  DropUnreached(graph, &wanted);
  return wanted;
}

std::vector<TShape> ArgumentShapes(const ExecGraph& graph, const ExecNode& forward) {
  std::vector<TShape> shapes;
  for (int i = 0; i < forward.num_args; ++i) shapes.push_back(graph.spec(forward.inputs[i]).shape);
  return shapes;
}

std::vector<std::vector<int>> CountReaders(const ExecGraph& graph) {
  std::vector<std::vector<int>> readers(graph.nodes.size());
  for (size_t id = 0; id < graph.nodes.size(); ++id)
    readers[id].resize(graph.nodes[id].specs.size());
  for (const ExecNode& node : graph.nodes) {
    for (const NodeEntry& e : node.inputs) {
      if (e) ++readers[e.node][e.index];
    }
  }
  for (const NodeEntry& e : graph.heads) ++readers[e.node][e.index];
  return readers;
}

ExecGraph RunPasses(const Graph& graph, const BindRequest& request, Runtime& runtime) {
  ExecGraph g = Infer(graph, request);
  g = Place(std::move(g), request);
  g = LowerComposites(std::move(g), request, runtime);
  g = FoldBatchNorm(std::move(g), request, runtime);  // folded weights are cast like others
  g = CastForAmp(std::move(g), request, runtime);
  g = Fuse(std::move(g), request, runtime);
  g = ChooseLayouts(std::move(g), request, runtime);
  g = AddGradient(std::move(g), request, runtime.operators());
  g = CopyAcrossDevices(FinalizePlans(std::move(g), request, runtime), request);
  g = ChooseOrder(std::move(g));
  g = Recompute(std::move(g), request);
  // The budget limits the plan for one worker.
  return request.memory_budget.limits()
             ? std::move(g)
             : Overlap(std::move(g), request.ctx, runtime.options().cpu_workers);
}

}  // namespace mxtrain::executor
