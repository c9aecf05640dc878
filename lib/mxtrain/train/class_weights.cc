// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/class_weights.h"

#include <algorithm>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain {
namespace {

// The name used by Symbol::ListOutputs.
std::string NameOf(const Graph& graph, const NodeEntry& entry) {
  const Node& node = graph.nodes[static_cast<size_t>(entry.node)];
  return node.op ? node.name + "_" + node.op->ListOutputs()[static_cast<size_t>(entry.index)]
                 : node.name;
}

}  // namespace

ClassifierHead FindClassifier(const Symbol& symbol,
                              const std::map<std::string, TShape>& input_shapes) {
  const LossReport losses(symbol);
  const auto is_softmax = [](const LossReport::Head& head) {
    return head.kind == LossReport::Head::Kind::kSoftmax;
  };
  const auto count = std::count_if(losses.heads().begin(), losses.heads().end(), is_softmax);
  if (count != 1)
    Throw(ErrorKind::kConfig,
          "the net has {} SoftmaxOutput, expected one; with several, set class_weights in their "
          "layers",
          count);
  const LossReport::Head& head =
      *std::find_if(losses.heads().begin(), losses.heads().end(), is_softmax);
  const TShape output = symbol.InferShape(input_shapes).outputs[static_cast<size_t>(head.output)];
  return {head.output, head.label, output[head.class_axis_1 ? 1 : output.ndim() - 1]};
}

Symbol WithClassWeights(const OperatorRegistry& registry, const Symbol& symbol,
                        const ClassifierHead& head, const std::vector<double>& weights) {
  const Graph& graph = symbol.graph();
  const Node& node =
      graph.nodes[static_cast<size_t>(graph.heads[static_cast<size_t>(head.output)].node)];
  if (!ParamOf(*node.op, "class_weights").empty()) {
    Throw(ErrorKind::kConfig, "'{}' already has class_weights: keep one of the two", node.name);
  }
  const Symbol internals = symbol.GetInternals();
  std::vector<Symbol> inputs;
  for (const NodeEntry& input : node.inputs) inputs.push_back(internals[NameOf(graph, input)]);
  Kwargs kwargs = node.op->GetParams();
  kwargs.emplace_back("class_weights", params::Print(weights));
  std::vector<Symbol> outputs;
  for (int i = 0; i < symbol.NumOutputs(); ++i) outputs.push_back(symbol[i]);
  outputs[static_cast<size_t>(head.output)] = Symbol::Create(
      registry, node.op->TypeString(), node.name, kwargs, inputs, {}, node.attrs, node.where);
  return Symbol::Group(outputs);
}

std::vector<double> BalancedWeights(const std::vector<int64_t>& counts) {
  const auto classes = static_cast<double>(
      std::count_if(counts.begin(), counts.end(), [](int64_t count) { return count > 0; }));
  const auto examples =
      static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  std::vector<double> weights;
  for (const int64_t count : counts)
    weights.push_back(count > 0 ? examples / (classes * static_cast<double>(count)) : 1);
  return weights;
}

}  // namespace mxtrain
