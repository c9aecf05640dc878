// Fuse: chains of operators become one where a pattern says so and a kernel better than `ref` takes the result; in inference a batch norm is
// folded into the convolution before it.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/executor/passes/rewriter.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

// The operators of one pass over the graph, and which of them may disappear into another.
class Fuser {
 public:
  Fuser(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph), request_(request), runtime_(runtime), readers_(CountReaders(graph)), wanted_(WantedGradients(graph, request)),
        gone_(graph.nodes.size()), rewriter_(graph) {}

  ExecGraph Run() {
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      rewriter_.Keep(id);
      if (graph_.nodes[id].kind != Node::Kind::kForward) continue;
      if (!request_.needs_backward() && FoldBatchNorm(id)) continue;
      for (const FusePattern& pattern : runtime_.operators().Patterns()) {
        if (request_.is_train ? !pattern.for_training : !pattern.for_inference) continue;
        if (Apply(pattern, id)) break;
      }
    }
    return rewriter_.Finish();
  }

 private:
  // An operator whose only reader is the next one of the chain, and that nobody asked to see.
  bool MayVanish(int id) const {
    const ExecNode& node = graph_.nodes[id];
    for (size_t i = 0; i < readers_[id].size(); ++i) {
      if (readers_[id][i] != (i == 0 ? 1 : 0)) return false;
    }
    for (const NodeEntry& head : graph_.heads) {
      if (head.node == id) return false;
    }
    return std::find(request_.monitored.begin(), request_.monitored.end(), node.name) == request_.monitored.end();
  }

  // Ids of the chain that ends at `last`, or nothing.
  std::vector<int> Match(const std::vector<std::string>& chain, int last) const {
    std::vector<int> ids;
    int id = last;
    for (size_t k = chain.size(); k-- > 0;) {
      const ExecNode& node = graph_.nodes[id];
      if (node.kind != Node::Kind::kForward || node.op->TypeString() != chain[k]) return {};
      if (gone_[id] || (k + 1 < chain.size() && !MayVanish(id))) return {};
      ids.insert(ids.begin(), id);
      if (k > 0) {
        if (node.inputs.empty() || node.inputs[0].index != 0) return {};
        id = node.inputs[0].node;
      }
    }
    return ids;
  }

  bool Apply(const FusePattern& pattern, int last) {
    const std::vector<int> ids = Match(pattern.chain, last);
    if (ids.empty()) return false;
    std::vector<const OperatorProperty*> ops;
    for (int id : ids) ops.push_back(graph_.nodes[id].op.get());
    const std::optional<Kwargs> kwargs = pattern.params ? pattern.params(ops) : ops[0]->GetParams();
    if (!kwargs) return false;

    ExecNode fused(graph_.nodes[last]);
    fused.op = runtime_.operators().Create(pattern.into, *kwargs);
    fused.ctx = graph_.nodes[last].ctx;
    fused.inputs.clear();
    fused.num_args = 0;
    for (bool aux : {false, true}) {
      for (size_t k = 0; k < ids.size(); ++k) {
        const ExecNode& node = graph_.nodes[ids[k]];
        const int begin = aux ? node.num_args : k == 0 ? 0 : 1;
        const int end = aux ? static_cast<int>(node.inputs.size()) : node.num_args;
        for (int i = begin; i < end; ++i) fused.inputs.push_back(rewriter_.Map(node.inputs[i]));
      }
      if (!aux) fused.num_args = static_cast<int>(fused.inputs.size());
    }
    // The outputs of the last operator first, then what the fused one has beside them, as the first has it.
    fused.specs = graph_.nodes[last].specs;
    const ExecNode& first = graph_.nodes[ids[0]];
    for (int i = static_cast<int>(fused.specs.size()); i < fused.op->NumOutputs(); ++i) fused.specs.push_back(first.specs[i]);
    fused.specs.resize(fused.op->NumOutputs());
    fused.req.assign(fused.specs.size(), OpReqType::kWriteTo);
    fused.adds_to.resize(fused.specs.size());
    for (int id : ids) fused.origins.push_back(graph_.nodes[id].name);
    if (!HasGoodRow(fused, ids)) return false;

    const int id = rewriter_.Add(std::move(fused));
    for (int old : ids) gone_[old] = true;
    for (size_t i = 0; i < graph_.nodes[last].specs.size(); ++i) rewriter_.Redirect({last, static_cast<int>(i)}, {id, static_cast<int>(i)});
    return true;
  }

  // Whether a row before `ref` takes the fused operator.
  bool HasGoodRow(const ExecNode& node, const std::vector<int>& ids) {
    const std::vector<std::optional<Layout>> layouts(node.num_args);
    std::vector<OpReqType> grad_req;
    bool any = false;
    for (int id : ids) any |= std::find(wanted_[id].begin(), wanted_[id].end(), true) != wanted_[id].end();
    if (any && request_.needs_backward()) grad_req.assign(node.num_args, OpReqType::kWriteTo);
    for (const PlanRow* row : runtime_.operators().Rows(node.op->TypeString(), node.ctx.type)) {
      if (row->rank >= kRefRank) break;
      if (PlanNode(rewriter_.graph(), node, request_, runtime_, layouts, grad_req, row->name.c_str())) return true;
    }
    return false;
  }

  // Convolution, BatchNorm -> Convolution with weights that _FoldBatchNorm derives from the parameters.
  bool FoldBatchNorm(int last) {
    if (request_.is_train || !runtime_.operators().Has("_FoldBatchNorm")) return false;
    const std::vector<int> ids = Match({"Convolution", "BatchNorm"}, last);
    if (ids.empty()) return false;
    const ExecNode& conv = graph_.nodes[ids[0]];
    const ExecNode& norm = graph_.nodes[last];
    for (size_t i = 1; i < readers_[last].size(); ++i) {
      if (readers_[last][i]) return false;  // somebody looks at the statistics
    }
    for (int i = 1; i < conv.num_args; ++i) {
      if (!graph_.nodes[conv.inputs[i].node].is_variable()) return false;
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
      if (key == "axis" && value != "1") return false;
      if (key == "eps" || key == "fix_gamma") fold_params.emplace_back(key, value);
    }
    fold_params.emplace_back("no_bias", no_bias ? "True" : "False");

    ExecNode fold;
    fold.kind = Node::Kind::kForward;
    fold.name = norm.name + "_folded";
    fold.where = norm.where;
    fold.ctx = norm.ctx;
    fold.op = runtime_.operators().Create("_FoldBatchNorm", fold_params);
    for (int i = 1; i < conv.num_args; ++i) fold.inputs.push_back(rewriter_.Map(conv.inputs[i]));
    for (size_t i = 1; i < norm.inputs.size(); ++i) fold.inputs.push_back(rewriter_.Map(norm.inputs[i]));
    fold.num_args = static_cast<int>(fold.inputs.size());
    const TensorSpec weight = rewriter_.spec(fold.inputs[0]);
    const size_t statistics = no_bias ? 1 : 2;
    for (size_t i = 1; i < fold.inputs.size(); ++i) {
      if (rewriter_.spec(fold.inputs[i]).type != (i < statistics ? weight.type : rewriter_.spec(fold.inputs[statistics]).type)) return false;
    }
    fold.specs = {{weight.shape, weight.type, Layout()}, {TShape{weight.shape[0]}, weight.type, Layout()}};
    fold.req.assign(2, OpReqType::kWriteTo);
    fold.adds_to.resize(2);
    const int fold_id = rewriter_.Add(std::move(fold));

    ExecNode folded(conv);
    folded.name = norm.name;
    folded.where = conv.where;
    folded.op = runtime_.operators().Create("Convolution", conv_params);
    folded.inputs = {rewriter_.Map(conv.inputs[0]), {fold_id, 0}, {fold_id, 1}};
    folded.num_args = 3;
    folded.origins = {conv.name, norm.name};
    const int id = rewriter_.Add(std::move(folded));
    for (int old : ids) gone_[old] = true;
    rewriter_.Redirect({last, 0}, {id, 0});
    return true;
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  const std::vector<std::vector<int>> readers_;
  const std::vector<std::vector<bool>> wanted_;
  std::vector<bool> gone_;  // old nodes that live on in another one
  Rewriter rewriter_;
};

}  // namespace

ExecGraph Fuse(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!request.fuse || request.reference_kernels) return graph;
  return Fuser(graph, request, runtime).Run();
}

}  // namespace mxtrain::executor
