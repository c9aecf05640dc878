// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/symbol.h"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "mxtrain/base/suggest.h"
#include "mxtrain/symbol/internal/attrs.h"
#include "mxtrain/symbol/internal/symbol_rep.h"

namespace mxtrain {
namespace {

std::vector<std::string> NamesIn(const Graph& graph, const std::vector<int>& ids) {
  std::vector<std::string> names;
  for (int id : ids) names.push_back(graph.nodes[static_cast<size_t>(id)].name);
  return names;
}

// The vertex that all heads are outputs of; null for none and for several.
const Vertex* OnlyVertex(const std::vector<Edge>& heads) {
  const bool one = !heads.empty() && std::all_of(heads.begin(), heads.end(), [&](const Edge& e) {
    return e.vertex == heads[0].vertex;
  });
  return one ? heads[0].vertex.get() : nullptr;
}

const Node& NodeWithAttrs(const std::vector<Edge>& heads) {
  const Vertex* vertex = OnlyVertex(heads);
  if (!vertex)
    Throw(ErrorKind::kConfig,
          "a group of {} outputs has no attributes of its own; choose one output", heads.size());
  return vertex->node;
}

}  // namespace

const Symbol::Rep& Symbol::rep() const {
  static const Rep empty({});
  return rep_ ? *rep_ : empty;
}

const Graph& Symbol::graph() const {
  return rep().graph();
}

Symbol Symbol::Variable(const std::string& name, const Attrs& attrs, const std::string& where) {
  return Symbol(std::make_shared<Rep>(std::vector{Edge{MakeVariable(name, attrs, where), 0}}));
}

Symbol Symbol::Group(std::span<const Symbol> symbols) {
  std::vector<Edge> heads;
  Scope scope;
  for (const Symbol& symbol : symbols) {
    if (symbol.NumOutputs() == 0) Throw(ErrorKind::kConfig, "a group cannot hold an empty symbol");
    heads.insert(heads.end(), symbol.rep().heads.begin(), symbol.rep().heads.end());
    scope.Join(symbol.rep().scope());
  }
  return Symbol(std::make_shared<Rep>(std::move(heads), std::move(scope)));
}

int Symbol::NumOutputs() const {
  return static_cast<int>(rep().heads.size());
}

Symbol Symbol::operator[](int output) const {
  if (output < 0 || output >= NumOutputs()) {
    Throw(ErrorKind::kConfig, "there is no output {}; the symbol has {}", output, NumOutputs());
  }
  std::vector<Edge> head{rep().heads[static_cast<size_t>(output)]};
  // Outputs of one node reach the same names.
  if (OnlyVertex(rep().heads)) return Symbol(std::make_shared<Rep>(std::move(head), rep().scope()));
  return Symbol(std::make_shared<Rep>(std::move(head)));
}

Symbol Symbol::operator[](std::string_view output_name) const {
  const std::vector<std::string> names = ListOutputs();
  const auto found = std::find(names.begin(), names.end(), output_name);
  if (found == names.end()) {
    const std::string nearest = DidYouMean(output_name, names);
    Throw(ErrorKind::kConfig, "there is no output '{}'{}", output_name,
          nearest.empty() && names.size() <= 8 ? format("; there are: {}", join(names, ", "))
                                               : nearest);
  }
  return (*this)[static_cast<int>(found - names.begin())];
}

Symbol Symbol::GetInternals() const {
  const Graph& laid_out = graph();
  const std::vector<VertexRef> vertices = VerticesInOrder(rep().heads);
  std::vector<Edge> outputs;
  for (size_t i = 0; i < vertices.size(); ++i) {
    if (laid_out.nodes[i].kind == Node::Kind::kAux) continue;
    const int visible = laid_out.nodes[i].op ? laid_out.nodes[i].op->NumVisibleOutputs() : 1;
    for (int k = 0; k < visible; ++k) outputs.push_back({vertices[i], k});
  }
  return Symbol(std::make_shared<Rep>(std::move(outputs)));
}

std::string Symbol::Name() const {
  const Vertex* vertex = OnlyVertex(rep().heads);
  return vertex ? rep().NameOf(0) : "";
}

std::vector<std::string> Symbol::ListArguments() const {
  return NamesIn(graph(), graph().Arguments());
}
std::vector<std::string> Symbol::ListAuxiliaryStates() const {
  return NamesIn(graph(), graph().Auxiliaries());
}

std::vector<std::string> Symbol::ListOutputs() const {
  std::vector<std::string> names;
  // Listed once for all heads of a vertex.
  std::unordered_map<const Vertex*, std::vector<std::string>> outputs;
  for (size_t i = 0; i < rep().heads.size(); ++i) {
    const Edge& head = rep().heads[i];
    const Node& node = head.vertex->node;
    if (!node.op) {
      names.push_back(rep().NameOf(i));
      continue;
    }
    const auto [found, fresh] = outputs.try_emplace(head.vertex.get());
    if (fresh) found->second = node.op->ListOutputs();
    names.push_back(rep().NameOf(i) + "_" + found->second[static_cast<size_t>(head.index)]);
  }
  return names;
}

std::string Symbol::Attr(const std::string& key) const {
  const Attrs& attrs = NodeWithAttrs(rep().heads).attrs;
  const auto found = attrs.find(BareKey(key));
  return found == attrs.end() ? "" : found->second;
}

Symbol Symbol::WithAttr(const std::string& key, const std::string& value) const {
  NodeWithAttrs(rep().heads);
  auto vertex = std::make_shared<Vertex>(*rep().heads[0].vertex);
  vertex->node.attrs[BareKey(key)] = value;
  std::vector<Edge> heads = rep().heads;
  for (Edge& head : heads) head.vertex = vertex;
  return Symbol(std::make_shared<Rep>(std::move(heads)));
}

std::map<std::string, Attrs> Symbol::ListAttrs() const {
  std::map<std::string, Attrs> all;
  for (const Node& node : graph().nodes) {
    if (!node.attrs.empty()) all[node.name] = node.attrs;
  }
  return all;
}

Symbol::Shapes Symbol::InferShape(const std::map<std::string, TShape>& known) const {
  const Graph& g = graph();
  const std::vector<int> arguments = g.Arguments(), auxiliaries = g.Auxiliaries();
  std::vector<std::string> names = NamesIn(g, arguments);
  for (const std::string& name : NamesIn(g, auxiliaries)) names.push_back(name);
  const std::unordered_set<std::string_view> variables(names.begin(), names.end());
  for (const auto& [name, shape] : known) {
    if (variables.contains(name)) continue;
    Throw(ErrorKind::kConfig, "a shape was given for '{}', but there is no such variable{}", name,
          DidYouMean(name, names));
  }
  const InferredSpecs specs = InferSpecs(g, known, {}, /*allow_partial=*/true);
  Shapes shapes;
  shapes.complete = specs.complete;
  for (int id : arguments) shapes.arguments.push_back(specs.shapes[static_cast<size_t>(id)][0]);
  for (int id : auxiliaries) shapes.auxiliaries.push_back(specs.shapes[static_cast<size_t>(id)][0]);
  for (const NodeEntry& head : g.heads) {
    shapes.outputs.push_back(
        specs.shapes[static_cast<size_t>(head.node)][static_cast<size_t>(head.index)]);
  }
  return shapes;
}

}  // namespace mxtrain
