// SPDX-License-Identifier: Apache-2.0
// FoldBatchNorm: in inference a batch norm is folded into the convolution before it.
#include "mxtrain/executor/internal/chains.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

// Convolution, BatchNorm -> Convolution with weights computed from the parameters by
// _FoldBatchNorm; unchanged where not applicable.
void Fold(const ExecGraph& graph, const Chain& chain, Runtime& runtime, Rewriter* rewriter) {
  const ExecNode& conv = graph.nodes[chain.ids[0]];
  const ExecNode& norm = graph.nodes[chain.ids[1]];
  for (int i = 1; i < conv.num_args; ++i) {
    if (!graph.nodes[conv.inputs[i].node].is_variable()) return;
  }
  Kwargs conv_params, fold_params;
  bool no_bias = false;
  for (auto [key, value] : conv.op->GetParams()) {
    if (key == "no_bias") {
      no_bias = value == "True";
      value = "False";
    }
    conv_params.emplace_back(key, value);
  }
  for (const auto& [key, value] : norm.op->GetParams()) {
    if (key == "axis" && value != "1") return;
    if (key == "eps" || key == "fix_gamma") fold_params.emplace_back(key, value);
  }
  fold_params.emplace_back("no_bias", no_bias ? "True" : "False");

  ExecNode fold;
  fold.kind = Node::Kind::kForward;
  fold.name = norm.name + "_folded";
  fold.where = norm.where;
  fold.PlaceBeside(norm);
  fold.op = runtime.operators().Create("_FoldBatchNorm", fold_params);
  for (int i = 1; i < conv.num_args; ++i) fold.inputs.push_back(rewriter->Map(conv.inputs[i]));
  for (size_t i = 1; i < norm.inputs.size(); ++i)
    fold.inputs.push_back(rewriter->Map(norm.inputs[i]));
  fold.num_args = static_cast<int>(fold.inputs.size());
  const TensorSpec weight = rewriter->spec(fold.inputs[0]);
  const size_t statistics = no_bias ? 1 : 2;
  for (size_t i = 1; i < fold.inputs.size(); ++i) {
    if (rewriter->spec(fold.inputs[i]).type !=
        (i < statistics ? weight.type : rewriter->spec(fold.inputs[statistics]).type))
      return;
  }
  fold.specs = {{weight.shape, weight.type, Layout()},
                {TShape{weight.shape[0]}, weight.type, Layout()}};
  fold.req.assign(2, OpReqType::kWriteTo);
  fold.adds_to.resize(2);
  const int fold_id = rewriter->Add(std::move(fold));

  ExecNode folded(conv);
  folded.name = norm.name;
  folded.where = conv.where;
  folded.op = runtime.operators().Create("Convolution", conv_params);
  folded.inputs = {rewriter->Map(conv.inputs[0]), {fold_id, 0}, {fold_id, 1}};
  folded.num_args = 3;
  folded.origins = {conv.name, norm.name};
  const int id = rewriter->Add(std::move(folded));
  rewriter->Redirect({chain.ids[1], 0}, {id, 0});
}

}  // namespace

ExecGraph FoldBatchNorm(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!request.fuse || request.reference_kernels || request.is_train || request.needs_backward() ||
      !runtime.operators().Has("_FoldBatchNorm"))
    return graph;
  const ChainMatcher matcher(graph, request);
  Rewriter rewriter(graph);
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    rewriter.Keep(id);
    const std::optional<Chain> chain = matcher.Match({"Convolution", "BatchNorm"}, id);
    if (chain && !matcher.ShowsMore(id)) Fold(graph, *chain, runtime, &rewriter);
  }
  return rewriter.Finish();
}

}  // namespace mxtrain::executor
