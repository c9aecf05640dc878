// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/block_losses.h"

#include <algorithm>
#include <set>

#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/internal/rebuilding.h"

namespace mxtrain {
namespace {

constexpr const char* kBlockLoss = "linear_cross_entropy";
constexpr int64_t kLeastScoreBytes = 4 << 20;

bool IsTrue(const Node& node, const char* param) {
  return ParamOf(*node.op, param) == params::Print(true);
}

bool IsNumber(const Node& node, const char* param, double wanted) {
  const std::string text = ParamOf(*node.op, param);
  double value = wanted;
  if (!text.empty()) params::Parse(text, &value);
  return value == wanted;
}

class Finder {
 public:
  Finder(const Symbol& net, const std::map<std::string, TShape>& shapes,
         const std::vector<MetricSpec>& metrics)
      : graph_(net.graph()),
        specs_(InferSpecs(graph_, shapes, {}, /*allow_partial=*/true)),
        readers_(graph_.nodes.size()) {
    for (const Node& node : graph_.nodes) {
      for (const NodeEntry& input : node.inputs) ++readers_[static_cast<size_t>(input.node)];
    }
    for (const NodeEntry& head : graph_.heads) ++readers_[static_cast<size_t>(head.node)];
    // What a metric without an output compares is one of the heads, so it counts for all.
    for (const MetricSpec& spec : metrics) {
      if (!Metric::Create(spec.name, spec.params)->takes_losses())
        compared_.insert(HeadName(spec.output));
    }
  }

  // The FullyConnected node of a head that can be replaced; null if it cannot.
  const Node* LayerOf(const NodeEntry& head) const {
    const Node& loss = At(head);
    if (!loss.op || loss.op->TypeString() != "SoftmaxOutput" || !IsPlain(loss)) return nullptr;
    if (compared_.contains("") || compared_.contains(loss.name)) return nullptr;
    if (ReadersOf(head) != 1) return nullptr;
    NodeEntry scores = loss.inputs[0];
    if (IsTrue(loss, "multi_output")) {
      // The divisor without normalization is another one.
      if (ParamOf(*loss.op, "normalization") == "null" || !IsTurned(scores)) return nullptr;
      scores = At(scores).inputs[0];
    }
    const Node& layer = At(scores);
    if (!layer.op || layer.op->TypeString() != "FullyConnected" || ReadersOf(scores) != 1)
      return nullptr;
    const TShape &data = ShapeOf(layer.inputs[0]), &all = ShapeOf(scores),
                 &label = ShapeOf(loss.inputs[1]);
    if (!data.known() || !all.known() || !label.known() || data.ndim() < 2) return nullptr;
    const bool rows_kept = !IsTrue(layer, "flatten") || data.ndim() == 2;
    const bool by_row =
        IsTrue(loss, "preserve_shape") || IsTrue(loss, "multi_output") || all.ndim() == 2;
    if (!rows_kept || !by_row || label.ndim() != data.ndim() - 1) return nullptr;
    if (!std::equal(label.begin(), label.end(), data.begin())) return nullptr;
    if (all.Size() * static_cast<int64_t>(sizeof(float)) < kLeastScoreBytes) return nullptr;
    return &layer;
  }

 private:
  const Node& At(const NodeEntry& entry) const {
    return graph_.nodes[static_cast<size_t>(entry.node)];
  }
  int ReadersOf(const NodeEntry& entry) const { return readers_[static_cast<size_t>(entry.node)]; }
  const TShape& ShapeOf(const NodeEntry& entry) const {
    return specs_.shapes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
  static bool IsPlain(const Node& loss) {
    return !IsTrue(loss, "out_grad") && ParamOf(*loss.op, "class_weights").empty() &&
           IsNumber(loss, "focal_gamma", 0) && IsNumber(loss, "smooth_alpha", 0);
  }
  // Whether it is [N, length, classes] with the classes moved to axis 1.
  bool IsTurned(const NodeEntry& entry) const {
    const Node& node = At(entry);
    if (!node.op || node.op->TypeString() != "transpose" || ReadersOf(entry) != 1) return false;
    return ParamOf(*node.op, "axes") == params::Print(TShape{0, 2, 1});
  }

  const Graph& graph_;
  const InferredSpecs specs_;
  std::vector<int> readers_;        // of the outputs of each node, heads included
  std::set<std::string> compared_;  // heads whose probabilities a metric reads; "": of any
};

bool TakesBlocks(const OperatorRegistry& operators, const BlockLossRequest& request) {
  const ComputeModes& modes = request.modes;
  const bool takes_type = !modes.amp || (*modes.amp == DType::kBfloat16 && WhyNoBfloat16().empty());
  return !request.watched && !request.weighed && modes.fuse && takes_type &&
         modes.group2ctx.empty() && request.ctx.type == DeviceType::kCPU &&
         !operators.Kernels(kBlockLoss, DeviceType::kCPU).empty();
}

}  // namespace

Symbol WithLossesInBlocks(const OperatorRegistry& operators, const Symbol& net,
                          const BlockLossRequest& request) {
  if (!TakesBlocks(operators, request)) return net;
  const Graph& graph = net.graph();
  const Finder finder(net, request.shapes, request.metrics);
  std::map<const Node*, const Node*> layers;  // by the loss
  for (const NodeEntry& head : graph.heads) {
    if (const Node* layer = finder.LayerOf(head))
      layers[&graph.nodes[static_cast<size_t>(head.node)]] = layer;
  }
  if (layers.empty()) return net;
  std::map<const Node*, std::vector<Symbol>> arguments;  // of the layers
  const auto build = [&](const Node& node, std::span<const Symbol> inputs) {
    arguments[&node].assign(inputs.begin(), inputs.end());
    const auto found = layers.find(&node);
    if (found == layers.end())
      return Rebuilding::Create(operators, node, node.op->GetParams(), inputs);
    const Node& layer = *found->second;
    std::vector<Symbol> in = arguments[&layer];
    in.insert(in.begin() + 2, inputs[1]);
    Kwargs params;
    for (const char* name : {"num_hidden", "no_bias"})
      params.emplace_back(name, ParamOf(*layer.op, name));
    for (const char* name : {"grad_scale", "use_ignore", "ignore_label", "normalization"})
      params.emplace_back(name, ParamOf(*node.op, name));
    return Symbol::Create(operators, kBlockLoss, node.name, params, in, {}, node.attrs, node.where);
  };
  return Rebuilding(graph, {}, build).Of(graph.heads);
}

}  // namespace mxtrain
