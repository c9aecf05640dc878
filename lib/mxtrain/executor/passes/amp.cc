// SPDX-License-Identifier: Apache-2.0
// CastForAmp: mixed precision. Convolutions and matrix products read data and weight in a narrow
// type; sums and biases stay in float32. Operators between them keep the narrow type; everything
// else (losses, softmax, heads) gets float32. Parameters are unchanged: a layer reads its weight
// converted to the narrow type (a kReorder node, every step), and the gradient is float32.
//
// The range of float16 is small, so all gradients are multiplied by a loss scale at their origin:
// the arguments of losses.
#include <algorithm>
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/executor/internal/rewriter.h"
#include "mxtrain/executor/passes.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::executor {
namespace {

class Caster {
 public:
  Caster(const ExecGraph& graph, const BindRequest& request, Runtime& runtime)
      : graph_(graph),
        request_(request),
        runtime_(runtime),
        narrow_(*request.amp),
        wanted_(WantedGradients(graph, request)),
        rewriter_(graph) {}

  ExecGraph Run() {
    if (narrow_ == DType::kFloat16) RequireLosses();
    for (int id = 0; id < static_cast<int>(graph_.nodes.size()); ++id) {
      if (graph_.nodes[id].is_variable()) {
        rewriter_.Keep(id);
      } else if (!AddNarrow(id)) {
        AddWide(id);
      }
    }
    for (const NodeEntry& head : graph_.heads) rewriter_.Redirect(head, Wide(rewriter_.Map(head)));
    return rewriter_.Finish();
  }

 private:
  bool HasGradient(int id) const {
    return std::find(wanted_[id].begin(), wanted_[id].end(), true) != wanted_[id].end();
  }

  // Gradients from outside are not scaled.
  void RequireLosses() const {
    for (const NodeEntry& head : graph_.heads) {
      const ExecNode& node = graph_.nodes[head.node];
      if (node.is_variable() || !node.op->NeedsHeadGradient() || !HasGradient(head.node)) continue;
      Throw(ErrorKind::kConfig,
            "{} is an output of the net but not a loss: in float16 gradients are scaled at the "
            "losses; end the net in "
            "a loss operator, or train in bfloat16 or float32",
            Describe(node));
    }
  }

  void Add(int id, ExecNode node) {
    const int now = rewriter_.Add(std::move(node));
    for (size_t i = 0; i < graph_.nodes[id].specs.size(); ++i)
      rewriter_.Redirect({id, static_cast<int>(i)}, {now, static_cast<int>(i)});
  }

  void AddWide(int id) {
    ExecNode node = graph_.nodes[id];
    for (NodeEntry& e : node.inputs) e = Wide(rewriter_.Map(e));
    if (narrow_ == DType::kFloat16 && !node.op->NeedsHeadGradient()) {
      for (int i = 0; i < node.num_args; ++i) {
        if (wanted_[id][i]) node.inputs[i] = Scaled(node.inputs[i], node);
      }
    }
    Add(id, std::move(node));
  }

  // `entry`, an argument of `loss`, with its gradient multiplied in the backward pass.
  NodeEntry Scaled(NodeEntry entry, const ExecNode& loss) {
    ExecNode node =
        NewNode(Node::Kind::kForward, loss.name + "_gradient_scale", loss, rewriter_.spec(entry));
    node.op = runtime_.operators().Create("_scale_gradient", {});
    node.num_args = 2;
    node.inputs = {entry, LossScale(loss)};
    return {rewriter_.Add(std::move(node)), 0};
  }

  NodeEntry LossScale(const ExecNode& loss) {
    int& id = rewriter_.graph().loss_scale;
    if (id < 0) {
      ExecNode node = NewNode(Node::Kind::kVariable, "_loss_scale", loss,
                              {TShape{1}, DType::kFloat32, Layout()});
      node.req = {OpReqType::kNullOp};
      id = rewriter_.Add(std::move(node));
    }
    return {id, 0};
  }

  // With one output, at the location of `like`.
  static ExecNode NewNode(Node::Kind kind, std::string name, const ExecNode& like,
                          const TensorSpec& spec) {
    ExecNode node;
    node.kind = kind;
    node.name = std::move(name);
    node.where = like.where;
    node.PlaceBeside(like);
    node.specs = {spec};
    node.req = {OpReqType::kWriteTo};
    node.adds_to.resize(1);
    return node;
  }

  bool AddNarrow(int id) {
    const ExecNode& old = graph_.nodes[id];
    const MixedPrecision rule = old.op->mixed_precision();
    if (rule.use == MixedPrecision::kNever) return false;
    const int count = rule.arguments < 0 ? old.num_args : rule.arguments;
    int narrow = 0;
    for (int i = 0; i < count; ++i) {
      if (graph_.spec(old.inputs[i]).type != DType::kFloat32) return false;
      narrow += rewriter_.spec(rewriter_.Map(old.inputs[i])).type == narrow_;
    }
    if (rule.use == MixedPrecision::kFollows && narrow == 0) return false;
    if (rule.use == MixedPrecision::kFollowsAll && narrow < count) return false;

    ExecNode node = old;
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const NodeEntry now = rewriter_.Map(node.inputs[i]);
      node.inputs[i] = i < count ? Narrow(now) : Wide(now);
    }
    SetOutputTypes(rewriter_.graph(), &node);
    if (!HasGoodKernel(id, node, rule)) return false;
    Add(id, std::move(node));
    return true;
  }

  // False if no kernel of the device takes the narrow arrays, or only the reference kernel while
  // float32 has a better one.
  bool HasGoodKernel(int id, const ExecNode& node, const MixedPrecision& rule) {
    if (request_.reference_kernels) return true;
    const auto entries = runtime_.operators().Kernels(node.op->TypeString(), node.ctx.type);
    const KernelEntry* kernel = KernelOf(rewriter_.graph(), node, id);
    if (!kernel) return false;
    if (kernel->rank < kRefRank || entries.size() == 1) return true;
    return rule.use != MixedPrecision::kGains && KernelOf(graph_, graph_.nodes[id], id) == kernel;
  }

  // The first kernel of the device that accepts the node; null if none does.
  const KernelEntry* KernelOf(const ExecGraph& graph, const ExecNode& node, int id) {
    const std::vector<std::optional<Layout>> layouts(static_cast<size_t>(node.num_args));
    std::vector<OpReqType> grad_req;
    if (HasGradient(id)) {
      for (bool want : wanted_[id])
        grad_req.push_back(want ? OpReqType::kWriteTo : OpReqType::kNullOp);
    }
    for (const KernelEntry* entry :
         runtime_.operators().Kernels(node.op->TypeString(), node.ctx.type)) {
      if (PlanNode(graph, node, request_, runtime_, layouts, grad_req, entry->name.c_str()))
        return entry;
    }
    return nullptr;
  }

  NodeEntry Narrow(NodeEntry entry) {
    return rewriter_.spec(entry).type == narrow_ ? entry : Converted(entry, narrow_);
  }

  // An entry that was narrowed before maps back to its source.
  NodeEntry Wide(NodeEntry entry) {
    if (rewriter_.spec(entry).type != narrow_) return entry;
    const auto source = source_of_.find(entry);
    return source != source_of_.end() ? source->second : Converted(entry, DType::kFloat32);
  }

  NodeEntry Converted(NodeEntry entry, DType type) {
    NodeEntry& result = converted_[entry];
    if (result) return result;
    const ExecNode& source = rewriter_.graph().nodes[entry.node];
    const bool parameter =
        source.kind == Node::Kind::kVariable && !request_.inputs.contains(source.name);
    ExecNode node = NewNode(parameter ? Node::Kind::kReorder : Node::Kind::kForward,
                            format("{}_{}", source.name, NameOf(type)), source,
                            {rewriter_.spec(entry).shape, type, Layout()});
    if (!parameter) {
      node.op = runtime_.operators().Create("Cast", {{"dtype", NameOf(type)}});
      node.num_args = 1;
    }
    if (entry.index > 0) node.name += format("_{}", entry.index);
    node.inputs = {entry};
    result = {rewriter_.Add(std::move(node)), 0};
    if (type == narrow_) source_of_[result] = entry;
    return result;
  }

  const ExecGraph& graph_;
  const BindRequest& request_;
  Runtime& runtime_;
  const DType narrow_;
  const std::vector<std::vector<bool>> wanted_;
  Rewriter rewriter_;
  std::map<NodeEntry, NodeEntry> converted_;  // new entries: the other type of each
  std::map<NodeEntry, NodeEntry> source_of_;  // of narrowed entries
};

}  // namespace

std::string WhyNoAmp(DType type, Context ctx, Runtime& runtime) {
  if (ctx.type != DeviceType::kGPU && type == DType::kBfloat16) return WhyNoBfloat16();
  return runtime.backend(ctx).WhyNotFastIn(type, ctx);
}

ExecGraph CastForAmp(ExecGraph graph, const BindRequest& request, Runtime& runtime) {
  if (!request.amp) return graph;
  const std::string why =
      request.reference_kernels ? "" : WhyNoAmp(*request.amp, request.ctx, runtime);
  if (!why.empty()) {
    Throw(ErrorKind::kConfig, "mixed precision in {} is not supported on {}: {}; train in float32",
          NameOf(*request.amp), request.ctx.ToString(), why);
  }
  return Caster(graph, request, runtime).Run();
}

}  // namespace mxtrain::executor
