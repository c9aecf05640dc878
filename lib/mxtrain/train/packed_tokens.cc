// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/packed_tokens.h"

#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/io/token_position.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/internal/rebuilding.h"
#include "mxtrain/train/internal/token_axes.h"

namespace mxtrain {
namespace {

using token_steps::Step;
using token_steps::TokenGraph;

class Packer {
 public:
  Packer(const OperatorRegistry& operators, const TokenGraph& net)
      : operators_(operators),
        net_(net),
        position_(Symbol::Variable(kTokenPosition)),
        segments_(Segments()) {}

  Symbol Build(const Node& node, std::span<const Symbol> given) const {
    const auto i = static_cast<size_t>(&node - net_.graph.nodes.data());
    std::vector<Symbol> inputs(given.begin(), given.end());
    for (size_t k = 0; k < inputs.size(); ++k) {
      if (const int axis = net_.places[i][k]; axis >= 0)
        inputs[k] = AtPlaces(inputs[k], net_.ShapeOf(node.inputs[k]), axis,
                             node.name + "_" + std::to_string(k));
    }
    Kwargs kwargs = node.op->GetParams();
    if (net_.steps[i] == Step::kAttention) {
      for (auto& [key, value] : kwargs) {
        if (key == "mask") value = "segments";
      }
      inputs.push_back(segments_);
    }
    return Rebuilding::Create(operators_, node, kwargs, inputs);
  }

 private:
  Symbol Create(const char* op, const std::string& name, const Kwargs& kwargs,
                const std::vector<Symbol>& inputs) const {
    return Symbol::Create(operators_, op, name, kwargs, inputs);
  }

  // The number of the document of each token, from 1; -1 at padding.
  Symbol Segments() const {
    const std::string name = kTokenPosition;
    const auto with = [&](const char* op, const char* suffix, const Symbol& x, double scalar) {
      return Create(op, name + suffix, {{"scalar", params::Print(scalar)}}, {x});
    };
    const Symbol begins = with("_equal_scalar", "_begins", position_, 0),
                 number = Create("cumsum", name + "_document", {{"axis", "1"}}, {begins}),
                 counts = with("_greater_equal_scalar", "_counts", position_, 0),
                 shifted = with("_plus_scalar", "_shifted", number, 1),
                 kept = Create("elemwise_mul", name + "_kept", {}, {shifted, counts});
    const Symbol segments = with("_minus_scalar", "_segments", kept, 1);
    return Create("BlockGrad", name + "_given", {}, {segments});
  }

  // A constant with a value for each place of a row, at the places of the tokens.
  Symbol AtPlaces(const Symbol& constant, const TShape& shape, int axis,
                  const std::string& name) const {
    std::vector<int64_t> table(shape.begin() + axis, shape.end());
    const Symbol rows =
        Create("Reshape", name + "_table", {{"shape", params::Print(TShape(table))}}, {constant});
    Symbol placed = Create("take", name + "_taken", {}, {rows, position_});
    for (int i = 1; i < axis; ++i) {
      placed = Create("expand_dims", name + "_axis" + std::to_string(i), {{"axis", "1"}}, {placed});
    }
    return placed;
  }

  const OperatorRegistry& operators_;
  const TokenGraph& net_;
  const Symbol position_, segments_;
};

}  // namespace

void RequireIgnoredLabels(const Symbol& net) {
  const Graph& graph = net.graph();
  for (const NodeEntry& head : graph.heads) {
    const Node& node = graph.nodes[static_cast<size_t>(head.node)];
    if (!node.op || node.op->NeedsHeadGradient()) continue;
    double ignored = 0;
    if (const std::string text = ParamOf(*node.op, "ignore_label"); !text.empty())
      params::Parse(text, &ignored);
    if (ParamOf(*node.op, "use_ignore") == params::Print(true) && ignored == -1) continue;
    Throw(ErrorKind::kConfig,
          "{}: padding, and what is not to be learnt, has the label -1; give it use_ignore: true",
          DescribeNode(node));
  }
}

Symbol WithPackedTokens(const OperatorRegistry& operators, const Symbol& net,
                        const std::string& input, int64_t length) {
  RequireIgnoredLabels(net);
  const auto followed = token_steps::FollowTokens(net.graph(), input, length);
  if (!followed) {
    Throw(ErrorKind::kConfig,
          "packed documents need a net in which causal attention alone mixes tokens: {}",
          followed.error().reason);
  }
  const Packer packer(operators, *followed);
  Rebuilding rebuilding(followed->graph, {}, [&](const Node& node, std::span<const Symbol> inputs) {
    return packer.Build(node, inputs);
  });
  return rebuilding.Of(followed->graph.heads);
}

}  // namespace mxtrain
