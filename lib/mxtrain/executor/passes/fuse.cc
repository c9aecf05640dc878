// SPDX-License-Identifier: Apache-2.0
// Fuse: replaces chains of operators by one where a pattern matches and a good kernel accepts the
// result: on the CPU one that is better than `ref`, on a GPU also one that ranks as `ref` if the
// operators of the chain have no better ones. Longer chains have priority.
#include <algorithm>
#include <map>

#include "mxtrain/executor/internal/chains.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {
namespace {

class Fuser {
 public:
  Fuser(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph),
        request_(request),
        runtime_(runtime),
        matcher_(graph, request),
        wanted_(WantedGradients(graph, request)),
        rewriter_(graph) {}

  ExecGraph Run() {
    FindFusions();
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      rewriter_.Keep(id);
      if (const auto found = fusions_.find(id); found != fusions_.end()) Apply(found->second);
    }
    return rewriter_.Finish();
  }

 private:
  struct Fusion {
    Chain chain;
    std::shared_ptr<const OperatorProperty> into;
  };

  void FindFusions() {
    std::vector<const FusePattern*> patterns;
    for (const FusePattern& pattern : runtime_.operators().Patterns()) {
      if (request_.is_train ? pattern.for_training : pattern.for_inference)
        patterns.push_back(&pattern);
    }
    std::stable_sort(patterns.begin(), patterns.end(),
                     [](auto* a, auto* b) { return a->chain.size() > b->chain.size(); });
    for (const FusePattern* pattern : patterns) {
      for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
        const std::optional<Chain> chain = matcher_.Match(pattern->chain, id);
        if (!chain) continue;
        std::vector<const OperatorProperty*> ops;
        for (int node : chain->ids) ops.push_back(graph_.nodes[node].op.get());
        const std::optional<Kwargs> kwargs =
            pattern->params ? pattern->params(ops) : ops[0]->GetParams();
        if (!kwargs) continue;
        matcher_.Claim(*chain);
        fusions_[id] = {*chain, runtime_.operators().Create(pattern->into, *kwargs)};
      }
    }
  }

  // Replaces the chain's last operator by the fused one; the others then have no readers.
  void Apply(const Fusion& fusion) {
    const ExecNode& first = graph_.nodes[fusion.chain.ids.front()];
    const int last = fusion.chain.ids.back();
    ExecNode fused(graph_.nodes[last]);
    fused.op = fusion.into;
    TakeInputs(fusion.chain, &fused);
    // The outputs of the last operator, then the fused one's additional outputs, as in the first
    // operator.
    fused.specs = graph_.nodes[last].specs;
    for (int i = static_cast<int>(fused.specs.size()); i < fused.op->NumOutputs(); ++i)
      fused.specs.push_back(first.specs[i]);
    fused.specs.resize(fused.op->NumOutputs());
    fused.req.assign(fused.specs.size(), OpReqType::kWriteTo);
    fused.adds_to.resize(fused.specs.size());
    for (int id : fusion.chain.ids) fused.origins.push_back(graph_.nodes[id].name);
    if (!HasGoodKernel(fused, fusion.chain.ids)) return;

    const int id = rewriter_.Add(std::move(fused));
    for (size_t i = 0; i < graph_.nodes[last].specs.size(); ++i)
      rewriter_.Redirect({last, static_cast<int>(i)}, {id, static_cast<int>(i)});
  }

  // Arguments of all operators in order, without intermediates; then the auxiliary states.
  void TakeInputs(const Chain& chain, ExecNode* fused) const {
    fused->inputs.clear();
    for (bool aux : {false, true}) {
      for (size_t k = 0; k < chain.ids.size(); ++k) {
        const ExecNode& node = graph_.nodes[chain.ids[k]];
        const int inner = k == 0 ? -1 : chain.through[k - 1];
        const int begin = aux ? node.num_args : 0,
                  end = aux ? static_cast<int>(node.inputs.size()) : node.num_args;
        for (int i = begin; i < end; ++i) {
          if (i != inner) fused->inputs.push_back(rewriter_.Map(node.inputs[i]));
        }
      }
      if (!aux) fused->num_args = static_cast<int>(fused->inputs.size());
    }
  }

  // `ref` is slow on the CPU. On a GPU the kernel of that rank is, for most operators, the only
  // one.
  bool HasBetterThanRef(const ExecNode& node) const {
    const auto kernels = runtime_.operators().Kernels(node.op->TypeString(), node.ctx.type);
    return node.ctx.type == DeviceType::kCPU ||
           std::any_of(kernels.begin(), kernels.end(),
                       [](const KernelEntry* entry) { return entry->rank < kRefRank; });
  }

  // Whether a kernel that is worth the fusion accepts the fused operator.
  bool HasGoodKernel(const ExecNode& node, const std::vector<int>& ids) {
    bool any = false;
    for (int id : ids)
      any |= std::find(wanted_[id].begin(), wanted_[id].end(), true) != wanted_[id].end();
    std::vector<OpReqType> grad_req;
    if (any && request_.needs_backward()) grad_req.assign(node.num_args, OpReqType::kWriteTo);
    const bool only_better = std::any_of(
        ids.begin(), ids.end(), [&](int id) { return HasBetterThanRef(graph_.nodes[id]); });
    return HasKernel(rewriter_.graph(), node, request_, runtime_, grad_req, only_better);
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  ChainMatcher matcher_;
  const std::vector<std::vector<bool>> wanted_;
  std::map<int, Fusion> fusions_;  // by the last node of the chain
  Rewriter rewriter_;
};

}  // namespace

ExecGraph Fuse(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!request.fuse || request.reference_kernels) return graph;
  graph = Fuser(graph, request, runtime).Run();
  graph = ShareWithBatchNorm(std::move(graph), request, runtime);
  return FuseElementwise(std::move(graph), request, runtime);
}

}  // namespace mxtrain::executor
