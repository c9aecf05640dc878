// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/example_weights.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/train/internal/rebuilding.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {
namespace {

bool IsLoss(const Node& node) {
  return node.op && !node.op->NeedsHeadGradient() && node.op->TypeString() != "BlockGrad";
}

// What a net computes of the arrays of batches.
class BatchValues {
 public:
  BatchValues(const Graph& graph, const DataIter& iter) {
    std::map<std::string, TShape> shapes;
    for (const DataDesc& desc : ArraysOf(iter)) {
      if (desc.shape.has_rank()) shapes[desc.name] = desc.array_shape();
    }
    specs_ = InferSpecs(graph, shapes, {}, /*allow_partial=*/true);
    for (const Node& node : graph.nodes) {
      const bool of_batch = std::ranges::any_of(node.inputs, [this](const NodeEntry& input) {
        return of_batch_[static_cast<size_t>(input.node)];
      });
      of_batch_.push_back(node.is_variable() ? shapes.contains(node.name) : of_batch);
    }
  }

  // Whether an argument has as many rows for each of so many examples.
  bool HasExamples(const NodeEntry& entry, int64_t examples) const {
    if (!of_batch_[static_cast<size_t>(entry.node)]) return false;
    const TShape& shape =
        specs_.shapes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
    return shape.known() && shape.ndim() > 0 && shape[0] > 0 && shape[0] % examples == 0;
  }

 private:
  InferredSpecs specs_;
  std::vector<bool> of_batch_;  // by node
};

[[noreturn]] void RefuseLoss(const Node& loss, const std::string& argument) {
  Throw(ErrorKind::kConfig,
        "examples have weights, and the loss '{}' ({}) cannot be weighed: its argument '{}' has no "
        "axis of examples; end the net with a loss of each example, such as SoftmaxOutput, or "
        "MakeLoss of values [batch, ...]",
        loss.name, loss.op->TypeString(), argument);
}

}  // namespace

bool HasExampleWeights(const DataIter& iter) {
  const std::vector<DataDesc> labels = iter.provide_label();
  return std::ranges::any_of(labels,
                             [](const DataDesc& label) { return label.name == kExampleWeight; });
}

Symbol WithExampleWeights(const OperatorRegistry& operators, const Symbol& net,
                          const DataIter& iter) {
  if (!HasExampleWeights(iter)) return net;
  const Graph& graph = net.graph();
  const BatchValues values(graph, iter);
  const Symbol weights = Symbol::Variable(kExampleWeight);
  const auto build = [&](const Node& node, std::span<const Symbol> inputs) {
    std::vector<Symbol> in(inputs.begin(), inputs.end());
    for (int i = 0; IsLoss(node) && i < node.num_args; ++i) {
      if (!node.op->HasGradient(i)) continue;
      const auto at = static_cast<size_t>(i);
      const std::string argument = node.op->ListArguments()[at];
      if (!values.HasExamples(node.inputs[at], iter.batch_size())) RefuseLoss(node, argument);
      const Symbol weighed[] = {in[at], weights};
      in[at] = Symbol::Create(operators, "_scale_gradient", node.name + "_" + argument + "_weighed",
                              {}, weighed, {}, node.attrs, node.where);
    }
    return Rebuilding::Create(operators, node, node.op->GetParams(), in);
  };
  return Rebuilding(graph, {}, build).Of(graph.heads);
}

}  // namespace mxtrain
