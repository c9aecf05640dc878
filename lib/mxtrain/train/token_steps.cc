// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/token_steps.h"

#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/param_of.h"
#include "mxtrain/train/internal/token_axes.h"

namespace mxtrain {

struct TokenSteps::Rep {
  const OperatorRegistry& operators;
  std::string input, position;
  token_steps::TokenGraph net;
};

namespace {

using token_steps::Step;
using token_steps::TokenAxes;
using token_steps::TokenGraph;

// The nodes of a net for other numbers of examples and tokens.
class Rebuilt {
 public:
  Rebuilt(const OperatorRegistry& operators, const TokenGraph& net, const std::string& position,
          int64_t batch, int64_t tokens)
      : operators_(operators),
        net_(net),
        batch_(batch),
        tokens_(tokens),
        position_(Symbol::Variable(position)) {
    for (size_t i = 0; i < net.graph.nodes.size(); ++i) built_.push_back(Build(i));
  }

  Symbol At(const NodeEntry& entry) const {
    const Symbol& node = built_[static_cast<size_t>(entry.node)];
    return node.NumOutputs() == 1 && entry.index == 0 ? node : node[entry.index];
  }

 private:
  Symbol Create(const std::string& op, const std::string& name, const Kwargs& kwargs,
                const std::vector<Symbol>& inputs) const {
    return Symbol::Create(operators_, op, name, kwargs, inputs);
  }

  Symbol Build(size_t i) {
    const Node& node = net_.graph.nodes[i];
    if (node.is_variable()) return Symbol::Variable(node.name, node.attrs, node.where);
    std::vector<Symbol> inputs;
    for (size_t k = 0; k < node.inputs.size(); ++k) {
      const int axis = net_.places[i][k];
      inputs.push_back(axis < 0
                           ? At(node.inputs[k])
                           : AtPlaces(node.inputs[k], axis, node.name + "_" + std::to_string(k)));
    }
    std::string op = node.op->TypeString();
    Kwargs kwargs = node.op->GetParams();
    if (net_.steps[i] == Step::kReshape) {
      op = "Reshape";
      kwargs = {{"shape", params::Print(Lengths({static_cast<int>(i), 0}))}};
    } else if (net_.steps[i] == Step::kAttention) {
      op = "cached_attention";
      kwargs = {{"window", params::Print(net_.window)}};
      for (const char* key : {"scale", "sliding_window"})
        kwargs.emplace_back(key, ParamOf(*node.op, key));
      inputs.push_back(position_);
    } else if (net_.steps[i] == Step::kRotation) {
      for (auto& [key, value] : kwargs) {
        if (key == "use_position") value = params::Print(true);
      }
      inputs.push_back(position_);
    }
    return Symbol::Create(operators_, op, node.name, kwargs, inputs, {}, node.attrs, node.where);
  }

  // The shape of an array with these numbers of examples and tokens.
  TShape Lengths(const NodeEntry& entry) const {
    const TokenAxes& axes = net_.AxesOf(entry);
    TShape shape = net_.ShapeOf(entry);
    shape[axes.batch] = batch_;
    shape[axes.tokens] = tokens_;
    return shape;
  }

  // A constant with a value for each place of the window, at those of the tokens.
  Symbol AtPlaces(const NodeEntry& entry, int axis, const std::string& name) {
    const TShape& shape = net_.ShapeOf(entry);
    std::vector<int64_t> table{net_.window}, result{batch_};
    for (int i = 1; i < axis; ++i) result.push_back(1);
    result.push_back(tokens_);
    for (int i = axis + 1; i < shape.ndim(); ++i)
      table.push_back(shape[i]), result.push_back(shape[i]);
    const Symbol rows =
        Create("Reshape", name + "_table", {{"shape", params::Print(TShape(table))}}, {At(entry)});
    const Symbol taken = Create("take", name + "_taken", {}, {rows, Places()});
    return Create("Reshape", name + "_placed", {{"shape", params::Print(TShape(result))}}, {taken});
  }

  // [batch, tokens]: of each token.
  Symbol Places() {
    if (places_.NumOutputs() > 0) return places_;
    const std::string name = position_.Name();
    const auto shaped = [&](const Symbol& x, const char* suffix, const TShape& shape) {
      return Create("Reshape", name + suffix, {{"shape", params::Print(shape)}}, {x});
    };
    const Symbol first = shaped(position_, "_column", {batch_, 1});
    const Symbol numbers = Create("_arange", name + "_numbers",
                                  {{"start", "0"}, {"stop", params::Print(tokens_)}}, {});
    places_ = Create("broadcast_add", name + "_of_tokens", {},
                     {first, shaped(numbers, "_row", {1, tokens_})});
    return places_;
  }

  const OperatorRegistry& operators_;
  const TokenGraph& net_;
  const int64_t batch_, tokens_;
  const Symbol position_;
  std::vector<Symbol> built_;
  Symbol places_;
};

// A name that no variable has.
std::string FreeName(const Graph& graph) {
  std::string name = "token_position";
  for (bool free = false; !free;) {
    free = true;
    for (const Node& node : graph.nodes) free = free && node.name != name;
    if (!free) name += '_';
  }
  return name;
}

// The attentions that no other one depends on.
std::vector<NodeEntry> LastAttentions(const TokenGraph& net) {
  std::vector<bool> read_by_attention(net.graph.nodes.size());
  std::vector<NodeEntry> last;
  for (size_t i = net.graph.nodes.size(); i-- > 0;) {
    const bool attends = net.steps[i] == Step::kAttention;
    if (attends && !read_by_attention[i]) last.push_back({static_cast<int>(i), 0});
    if (!attends && !read_by_attention[i]) continue;
    for (const NodeEntry& input : net.graph.nodes[i].inputs)
      read_by_attention[static_cast<size_t>(input.node)] = true;
  }
  return last;
}

}  // namespace

Expected<TokenSteps, Refusal> TokenSteps::Of(const OperatorRegistry& operators, const Symbol& net,
                                             const std::string& input, int64_t window) {
  Expected<TokenGraph, Refusal> followed = token_steps::FollowTokens(net.graph(), input, window);
  if (!followed) return followed.error();
  if (followed->graph.heads.size() != 1 || followed->AxesOf(followed->graph.heads[0]).constant())
    return Refusal{"the net must have one output, which depends on the tokens"};
  std::string position = FreeName(followed->graph);
  return TokenSteps(
      std::make_shared<Rep>(Rep{operators, input, std::move(position), std::move(*followed)}));
}

Symbol TokenSteps::Net(int64_t batch, int64_t tokens) const {
  const Rebuilt nodes(rep_->operators, rep_->net, rep_->position, batch, tokens);
  return nodes.At(rep_->net.graph.heads[0]);
}

Symbol TokenSteps::Filling(int64_t batch, int64_t tokens) const {
  const Rebuilt nodes(rep_->operators, rep_->net, rep_->position, batch, tokens);
  std::vector<Symbol> last;
  for (const NodeEntry& entry : LastAttentions(rep_->net)) last.push_back(nodes.At(entry));
  return last.empty() ? Symbol() : Symbol::Group(last);
}

const std::string& TokenSteps::position() const {
  return rep_->position;
}

int TokenSteps::tokens_axis() const {
  return rep_->net.AxesOf(rep_->net.graph.heads[0]).tokens;
}

}  // namespace mxtrain
