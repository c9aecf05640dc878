// SPDX-License-Identifier: Apache-2.0
// Symbol::Create and Symbol::Compose.
#include <algorithm>
#include <unordered_map>

#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/operator/zeros_if_missing.h"
#include "mxtrain/symbol/internal/attrs.h"
#include "mxtrain/symbol/internal/symbol_rep.h"
#include "mxtrain/symbol/symbol.h"

namespace mxtrain {
namespace {

// Assigns the inputs: by position, then by name.
class InputSlots {
 public:
  explicit InputSlots(const Node& node) : node_(node), names_(node.op->ListArguments()) {
    for (const std::string& auxiliary : node.op->ListAuxiliaryStates()) names_.push_back(auxiliary);
    edges_.resize(names_.size());
  }

  void FillByPosition(const std::vector<Edge>& positional) {
    if (positional.size() > names_.size()) {
      Throw(ErrorKind::kConfig, "{} takes {} inputs ({}), but got {}", DescribeNode(node_),
            names_.size(), join(names_, ", "), positional.size());
    }
    std::copy(positional.begin(), positional.end(), edges_.begin());
  }

  void FillByName(const std::string& name, const Edge& edge) {
    const auto found = std::find(names_.begin(), names_.end(), name);
    if (found == names_.end()) {
      const std::string nearest = DidYouMean(name, names_);
      Throw(ErrorKind::kConfig, "{} has no input '{}'{}", DescribeNode(node_), name,
            nearest.empty() ? format("; it has: {}", join(names_, ", ")) : nearest);
    }
    Edge& slot = edges_[static_cast<size_t>(found - names_.begin())];
    if (slot.vertex) {
      Throw(ErrorKind::kConfig,
            "{}: the input '{}' is given twice: by position ({}) and by name ({})",
            DescribeNode(node_), name, DescribeNode(slot.vertex->node),
            DescribeNode(edge.vertex->node));
    }
    slot = edge;
  }

  // An attribute for one input ("weight_lr_mult") goes to the variable that will be created for it;
  // anywhere else it would have no effect.
  void CheckInputAttrs() const {
    for (const auto& [key, value] : node_.attrs) {
      const auto split = SplitInputKey(key);
      if (!split) continue;
      const auto found = std::find(names_.begin(), names_.end(), split->first);
      if (found == names_.end()) {
        Throw(ErrorKind::kConfig,
              "{}: the attribute '{}' is for an input '{}', but the inputs are: {}",
              DescribeNode(node_), key, split->first, join(names_, ", "));
      }
      if (const Edge& given = edges_[static_cast<size_t>(found - names_.begin())]; given.vertex) {
        Throw(ErrorKind::kConfig,
              "{}: the attribute '{}' is for a new variable, but {} was given; set {} there",
              DescribeNode(node_), key, DescribeNode(given.vertex->node), split->second);
      }
      if (IsZeroIfMissing(*node_.op, static_cast<int>(found - names_.begin()))) {
        Throw(ErrorKind::kConfig,
              "{}: the attribute '{}' is for a new variable, but '{}' is zeros if it is not given; "
              "set {} on a variable of your own",
              DescribeNode(node_), key, split->first, split->second);
      }
    }
  }

  std::vector<Edge> Take() { return std::move(edges_); }

 private:
  const Node& node_;
  std::vector<std::string> names_;
  std::vector<Edge> edges_;
};

// Zeros for the missing arguments that may be; their shape follows from the operator's.
void AddZeros(const OperatorRegistry& registry, const Node& node,
              const std::shared_ptr<const GeneratedName>& generated, std::vector<Edge>* edges) {
  const std::vector<std::string> arguments = node.op->ListArguments();
  for (size_t i = 0; i < arguments.size(); ++i) {
    if ((*edges)[i].vertex || !IsZeroIfMissing(*node.op, static_cast<int>(i))) continue;
    Node zeros;
    zeros.name = node.name + "_" + arguments[i];
    zeros.where = node.where;
    zeros.op = CreateProperty(registry, "_zeros", {}, zeros, 0);
    auto vertex = std::make_shared<Vertex>(*MakeOperator(std::move(zeros), {}, generated));
    vertex->suffix = "_" + arguments[i];
    (*edges)[i] = Edge{std::move(vertex), 0};
  }
}

}  // namespace

Symbol Symbol::Create(const OperatorRegistry& registry, std::string_view op,
                      const std::string& name, const Kwargs& kwargs, std::span<const Symbol> inputs,
                      const std::map<std::string, Symbol>& named, const Attrs& attrs,
                      const std::string& where) {
  std::vector<Edge> positional;
  Scope scope;
  for (const Symbol& input : inputs) {
    positional.insert(positional.end(), input.rep().heads.begin(), input.rep().heads.end());
    scope.Join(input.rep().scope());
  }
  size_t given = positional.size();
  for (const auto& [input_name, input] : named) {
    given += input.rep().heads.size();
    scope.Join(input.rep().scope());
  }

  Node node;
  node.name = name.empty() ? scope.FreeName(op) : name;
  node.where = where;
  node.attrs = WithBareKeys(attrs);
  node.op = CreateProperty(registry, op, kwargs, node, given);

  InputSlots slots(node);
  slots.FillByPosition(positional);
  for (const auto& [input_name, input] : named) {
    if (input.NumOutputs() != 1) {
      Throw(ErrorKind::kConfig,
            "{}: the input '{}' must be a single output, but the symbol has {} ({})",
            DescribeNode(node), input_name, input.NumOutputs(), join(input.ListOutputs(), ", "));
    }
    slots.FillByName(input_name, input.rep().heads[0]);
  }
  slots.CheckInputAttrs();
  std::shared_ptr<const GeneratedName> generated;
  if (name.empty())
    generated = std::make_shared<const GeneratedName>(GeneratedName{Lower(op), node.name});
  std::vector<Edge> edges = slots.Take();
  AddZeros(registry, node, generated, &edges);
  const VertexRef vertex = MakeOperator(node, std::move(edges), std::move(generated));
  scope.Add(std::vector{Edge{vertex, 0}});

  std::vector<Edge> heads;
  const int visible = vertex->node.op->NumVisibleOutputs();  // may list all of them
  for (int i = 0; i < visible; ++i) heads.push_back({vertex, i});
  return Symbol(std::make_shared<Rep>(std::move(heads), std::move(scope)));
}

Symbol Symbol::Compose(const std::map<std::string, Symbol>& replacements) const {
  std::unordered_map<const Vertex*, Edge> replaced;  // replacement of each changed vertex
  std::vector<std::string> variables;
  const std::vector<VertexRef> order = VerticesInOrder(rep().heads);
  const std::vector<std::string> names = NamesOf(order);
  for (size_t i = 0; i < order.size(); ++i) {
    const VertexRef& vertex = order[i];
    if (!vertex->node.is_variable()) continue;
    variables.push_back(names[i]);
    const auto found = replacements.find(names[i]);
    if (found == replacements.end()) continue;
    if (found->second.NumOutputs() != 1) {
      Throw(ErrorKind::kConfig,
            "the variable '{}' can only be replaced by a single output, but the symbol has {} ({})",
            names[i], found->second.NumOutputs(), join(found->second.ListOutputs(), ", "));
    }
    replaced[vertex.get()] = found->second.rep().heads[0];
  }
  for (const auto& [name, symbol] : replacements) {
    if (std::find(variables.begin(), variables.end(), name) != variables.end()) continue;
    Throw(ErrorKind::kConfig, "there is no variable '{}' to replace{}", name,
          DidYouMean(name, variables));
  }
  auto renew = [&replaced](std::vector<Edge> edges) {
    for (Edge& edge : edges) {
      const auto found = replaced.find(edge.vertex.get());
      if (found == replaced.end()) continue;
      // A replaced variable becomes the given output; a rebuilt operator keeps the output's index.
      edge =
          edge.vertex->node.is_variable() ? found->second : Edge{found->second.vertex, edge.index};
    }
    return edges;
  };
  for (const VertexRef& vertex : order) {
    const bool touched =
        std::any_of(vertex->inputs.begin(), vertex->inputs.end(),
                    [&](const Edge& e) { return replaced.contains(e.vertex.get()); });
    if (!touched) continue;
    auto fresh = std::make_shared<Vertex>(*vertex);
    fresh->inputs = renew(vertex->inputs);
    replaced[vertex.get()] = Edge{fresh, 0};
  }
  std::vector<Edge> heads = renew(rep().heads);
  Scope scope;
  scope.Add(heads);
  return Symbol(std::make_shared<Rep>(std::move(heads), std::move(scope)));
}

}  // namespace mxtrain
