// SPDX-License-Identifier: Apache-2.0
// ShareWithBatchNorm: where a kernel of a convolution does a part of the work of the batch norm
// behind it (its sums) or before it (the sums of its gradient, behind ReLU's), both are replaced:
// by _ConvolutionWithBatchNorm, and by _BatchNormActivation with what it is then given.
#include <algorithm>

#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/param_of.h"

namespace mxtrain::executor {
namespace {

constexpr int kMean = 1, kInverseDeviation = 2;  // outputs of batch norms
constexpr int kGamma = 1, kBeta = 2;             // and arguments

class Sharer {
 public:
  Sharer(ExecGraph graph, const BindRequest& request, Runtime& runtime)
      : graph_(std::move(graph)),
        request_(request),
        runtime_(runtime),
        wanted_(WantedGradients(graph_, request)),
        readers_(CountReaders(graph_)) {}

  ExecGraph Run() && {
    std::vector<bool> summed(graph_.nodes.size());  // by a batch norm
    for (int id = 0; id < Size(); ++id) {
      if (SumsItsData(id) && Before(id).op->TypeString() == "Convolution")
        summed[graph_.nodes[id].inputs[0].node] = true;
    }
    for (int id = 0; id < Size(); ++id) {
      if (IsForward(id, "Convolution")) {
        ShareMost(id, summed[id], Gates(id));
      } else if (SumsItsData(id) && Before(id).op->TypeString() == "_ConvolutionWithBatchNorm" &&
                 Before(id).specs.size() > 1) {
        TakeSums(id);
      }
    }
    return std::move(graph_);
  }

 private:
  int Size() const { return static_cast<int>(graph_.nodes.size()); }
  void ShareMost(int id, bool sums, bool gates) {
    if (sums && gates && Give(id, true, true)) return;
    if (sums && Give(id, true, false)) return;
    if (gates) Give(id, false, true);
  }
  bool IsForward(int id, const char* type) const {
    const ExecNode& node = graph_.nodes[id];
    return node.kind == Node::Kind::kForward && node.op->TypeString() == type;
  }
  const ExecNode& Before(int id) const { return graph_.nodes[graph_.nodes[id].inputs[0].node]; }

  // A batch norm by statistics of the batch, of channels, whose data come from an operator of its
  // group.
  bool SumsItsData(int id) const {
    if (!IsForward(id, "BatchNorm") && !IsForward(id, "_BatchNormActivation")) return false;
    const OperatorProperty& op = *graph_.nodes[id].op;
    return op.NumVisibleOutputs() == 1 && ParamOf(op, "use_global_stats") == "False" &&
           ParamOf(op, "axis") == "1" && Before(id).kind == Node::Kind::kForward &&
           Before(id).group == graph_.nodes[id].group;
  }

  // Whether the gradient of a convolution's data is read by nothing but ReLU and batch norm.
  bool Gates(int id) const {
    const NodeEntry data = graph_.nodes[id].inputs[0];
    const ExecNode& norm = graph_.nodes[data.node];
    return request_.needs_backward() && wanted_[id][0] && data.index == 0 &&
           IsForward(data.node, "_BatchNormActivation") && norm.group == graph_.nodes[id].group &&
           norm.op->NumVisibleOutputs() == 1 && ParamOf(*norm.op, "act") == "relu" &&
           ParamOf(*norm.op, "with_sum") == "False" &&
           ParamOf(*norm.op, "use_global_stats") == "False" &&
           ParamOf(*norm.op, "fix_gamma") == "False" && ParamOf(*norm.op, "axis") == "1" &&
           readers_[data.node][0] == 1 && !IsMonitored(id) && !IsMonitored(data.node);
  }
  bool IsMonitored(int id) const {
    return std::find(request_.monitored.begin(), request_.monitored.end(), graph_.nodes[id].name) !=
           request_.monitored.end();
  }

  ExecNode Changed(int id, const char* type, const Kwargs& settings) const {
    ExecNode node = graph_.nodes[id];
    Kwargs kwargs = node.op->GetParams();
    for (const auto& setting : settings) {
      std::erase_if(kwargs, [&](const auto& entry) { return entry.first == setting.first; });
      kwargs.push_back(setting);
    }
    node.op = runtime_.operators().Create(type, kwargs);
    return node;
  }
  static void AddArguments(const std::vector<NodeEntry>& entries, ExecNode* node) {
    node->inputs.insert(node->inputs.begin() + node->num_args, entries.begin(), entries.end());
    node->num_args += static_cast<int>(entries.size());
  }
  // With the gradients that are wanted; of added arguments, those that they can have.
  bool HasKernelFor(int id, const ExecNode& node, bool better) {
    std::vector<OpReqType> grad_req;
    if (request_.needs_backward()) {
      for (int i = 0; i < node.num_args; ++i) {
        const bool wanted = i < static_cast<int>(wanted_[id].size())
                                ? wanted_[id][i]
                                : node.op->HasGradient(i) && wanted_[id][0];
        grad_req.push_back(wanted ? OpReqType::kWriteTo : OpReqType::kNullOp);
      }
    }
    return HasKernel(graph_, node, request_, runtime_, grad_req, better);
  }

  // False, with nothing done, if only the last kernel does it.
  bool Give(int id, bool sums, bool gates) {
    ExecNode node = Changed(
        id, "_ConvolutionWithBatchNorm",
        {{"sums_output", sums ? "True" : "False"}, {"gates_gradient", gates ? "True" : "False"}});
    if (sums) {
      const TensorSpec& out = node.specs[0];
      const DType wide = out.type == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32;
      node.specs.push_back({TShape{2, out.shape[1]}, wide, {}});
      node.req.push_back(OpReqType::kWriteTo);
      node.adds_to.resize(2);
    }
    const int norm_id = node.inputs[0].node;
    ExecNode norm;
    if (gates) {
      norm = Changed(norm_id, "_BatchNormActivation", {{"gated_gradient", "True"}});
      AddArguments({norm.inputs[0],
                    {norm_id, kMean},
                    {norm_id, kInverseDeviation},
                    norm.inputs[kGamma],
                    norm.inputs[kBeta]},
                   &node);
      if (!HasKernelFor(norm_id, norm, /*better=*/false)) return false;
    }
    if (!HasKernelFor(id, node, /*better=*/true)) return false;
    if (gates) graph_.nodes[norm_id] = std::move(norm);
    graph_.nodes[id] = std::move(node);
    return true;
  }

  void TakeSums(int id) {
    ExecNode node = Changed(id, "_BatchNormActivation", {{"with_batch_sums", "True"}});
    AddArguments({{node.inputs[0].node, 1}}, &node);
    if (HasKernelFor(id, node, /*better=*/false)) graph_.nodes[id] = std::move(node);
  }

  ExecGraph graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  const std::vector<std::vector<bool>> wanted_;
  const std::vector<std::vector<int>> readers_;
};

}  // namespace

ExecGraph ShareWithBatchNorm(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  // Recomputation cuts where one array passes, not an array and its sums.
  if (!request.is_train || request.divided_batch || request.memory_budget.limits()) return graph;
  return Sharer(std::move(graph), request, runtime).Run();
}

}  // namespace mxtrain::executor
