// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/example_weights.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/example_weight.h"
#include "mxtrain/symbol/graph.h"
#include "mxtrain/train/internal/rebuilding.h"
#include "mxtrain/train/loss_report.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {
namespace {

// Where the examples of a batch are in the arrays that a net computes of it. The numbers of an
// array in order are `blocks` blocks, each of which has the numbers of every example, one example
// after the other: 1 where axis 0 is that of examples, or begins with it, as in [N * T, C] made of
// [N, T, C]; T in [T, N, C], and in [T * N, C] made of it. A reshape keeps the number of blocks.
class BatchValues {
 public:
  BatchValues(const Graph& graph, const DataIter& iter) : examples_(iter.batch_size()) {
    std::map<std::string, TShape> shapes;
    for (const DataDesc& desc : ArraysOf(iter)) {
      if (desc.shape.has_rank()) shapes[desc.name] = desc.array_shape();
    }
    specs_ = InferSpecs(graph, shapes, {}, /*allow_partial=*/true);
    for (const Node& node : graph.nodes) {
      const std::vector<TShape>& outputs = specs_.shapes[blocks_.size()];
      std::vector<int64_t> blocks;
      for (const TShape& output : outputs) {
        blocks.push_back(!node.is_variable()          ? BlocksOf(node, output)
                         : shapes.contains(node.name) ? 1
                                                      : kNotOfBatch);
      }
      blocks_.push_back(std::move(blocks));
    }
  }

  // Whether an argument has as many rows for each example, those of one below the other.
  bool HasExamples(const NodeEntry& entry) const {
    const TShape& shape = ShapeOf(entry);
    if (!shape.known() || shape.ndim() == 0 || shape[0] == 0) return false;
    const int64_t blocks = BlocksAt(entry);
    if (examples_ == 1) return blocks != kNotOfBatch;
    return blocks == 1 && shape[0] % examples_ == 0;
  }

 private:
  static constexpr int64_t kNotOfBatch = -1, kUnknown = 0;

  const TShape& ShapeOf(const NodeEntry& entry) const {
    return specs_.shapes[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }
  int64_t BlocksAt(const NodeEntry& entry) const {
    return blocks_[static_cast<size_t>(entry.node)][static_cast<size_t>(entry.index)];
  }

  int64_t BlocksOf(const Node& node, const TShape& output) const {
    int64_t found = kNotOfBatch;
    for (int i = 0; i < node.num_args; ++i) {
      const NodeEntry& input = node.inputs[static_cast<size_t>(i)];
      if (BlocksAt(input) == kNotOfBatch) continue;
      const int64_t blocks =
          ShapeOf(input).known() && output.known() ? BlocksAfter(node, i, output) : kUnknown;
      if (found > 0 && blocks > 0 && blocks != found) return kUnknown;  // inputs contradict
      found = std::max(found, blocks);
    }
    if (found != kUnknown) return found;
    return output.known() && output.ndim() > 0 && output[0] == examples_ ? 1 : kUnknown;
  }

  // As far as one input tells them.
  int64_t BlocksAfter(const Node& node, int argument, const TShape& output) const {
    const NodeEntry& input = node.inputs[static_cast<size_t>(argument)];
    const int64_t blocks = BlocksAt(input);
    const TShape& shape = ShapeOf(input);
    if (blocks == kUnknown) return kUnknown;
    if (KeepsValues(node)) return argument == 0 ? blocks : kUnknown;
    int axes = 0;  // the leading ones that tell examples apart
    int64_t size = 1;
    while (axes < shape.ndim() && (size < blocks * examples_ || size % (blocks * examples_) != 0))
      size *= shape[axes++];
    const std::string type = node.op->TypeString();
    if (type == "transpose" || type == "SwapAxis") {
      const bool own_axis = axes > 0 && size / shape[axes - 1] == blocks;
      return own_axis ? BlocksBefore(*node.op, shape, axes - 1) : kUnknown;
    }
    if (argument == 0 && MovesRows(type)) return kUnknown;
    // More axes come after those that there were.
    if (output.ndim() > shape.ndim()) axes = shape.ndim();
    if (axes > output.ndim()) return kUnknown;
    return std::equal(shape.begin(), shape.begin() + axes, output.begin()) ? blocks : kUnknown;
  }

  // The numbers of all axes before that which `axis` becomes where axes are permuted.
  static int64_t BlocksBefore(const OperatorProperty& permuting, const TShape& shape, int axis) {
    std::vector<int64_t> order(static_cast<size_t>(shape.ndim()));
    std::iota(order.begin(), order.end(), 1);
    std::vector<TShape> in = {TShape(order)}, out = {TShape()}, aux;
    permuting.InferShape(&in, &out, &aux);
    int64_t blocks = 1;
    for (const int64_t from : out[0]) {
      if (from == axis + 1) break;
      blocks *= shape[static_cast<int>(from) - 1];
    }
    return blocks;
  }

  // Rows of another order, in a shape that does not tell it.
  static bool MovesRows(const std::string& type) {
    static constexpr std::string_view kTypes[] = {"reverse", "roll",      "shuffle",
                                                  "sort",    "argsort",   "topk",
                                                  "take",    "gather_nd", "boolean_mask"};
    return std::ranges::find(kTypes, type) != std::end(kTypes);
  }

  const int64_t examples_;
  InferredSpecs specs_;
  std::vector<std::vector<int64_t>> blocks_;  // by node and output
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
      if (!values.HasExamples(node.inputs[at])) RefuseLoss(node, argument);
      const Symbol weighed[] = {in[at], weights};
      in[at] = Symbol::Create(operators, "_scale_gradient", node.name + "_" + argument + "_weighed",
                              {}, weighed, {}, node.attrs, node.where);
    }
    return Rebuilding::Create(operators, node, node.op->GetParams(), in);
  };
  return Rebuilding(graph, {}, build).Of(graph.heads);
}

}  // namespace mxtrain
