// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/symbol/internal/vertex.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>
#include <unordered_set>

#include "mxtrain/base/post_order.h"
#include "mxtrain/symbol/internal/attrs.h"

namespace mxtrain {
namespace {

// Fused operators belong to the executor: in a symbol they would tie files to this library's
// rewriting.
void RefuseInternal(const OperatorRegistry& registry, const std::string& type) {
  if (!type.starts_with('_')) return;
  for (const FusePattern& pattern : registry.Patterns()) {
    if (pattern.into != type) continue;
    std::vector<std::string> chain;
    for (const FusePattern::Link& link : pattern.chain) chain.push_back(link.op);
    Throw(ErrorKind::kConfig, "{} is created by the executor from {}; use those", type,
          join(chain, " and "));
  }
}

}  // namespace

// A vertex destroyed while another is being destroyed on this thread leaves its inputs to that
// one's loop, so destructors do not nest.
Vertex::~Vertex() {
  thread_local std::vector<Edge>* orphans = nullptr;
  if (orphans) {
    std::move(inputs.begin(), inputs.end(), std::back_inserter(*orphans));
    return;
  }
  std::vector<Edge> queue = std::move(inputs);
  orphans = &queue;
  while (!queue.empty()) {
    const Edge released = std::move(queue.back());
    queue.pop_back();
  }
  orphans = nullptr;
}

bool IsAuxiliary(const Vertex& reader, size_t input) {
  return input >= static_cast<size_t>(reader.node.num_args);
}

std::vector<VertexRef> VerticesInOrder(std::span<const Edge> heads) {
  std::vector<const VertexRef*> roots;
  for (const Edge& head : heads) roots.push_back(&head.vertex);
  std::unordered_set<const Vertex*> seen;
  std::vector<VertexRef> order;
  PostOrder(
      roots, [](const VertexRef* v) { return (*v)->inputs.size(); },
      [](const VertexRef* v, size_t i) { return &(*v)->inputs[i].vertex; },
      [&seen](const VertexRef* v) { return seen.insert(v->get()).second; },
      [&order](const VertexRef* v) { order.push_back(*v); });
  return order;
}

Graph LayOut(std::span<const Edge> heads) {
  Graph graph;
  std::unordered_map<const Vertex*, int> ids;
  auto entry = [&ids](const Edge& edge) {
    return NodeEntry{ids.at(edge.vertex.get()), edge.index};
  };
  const std::vector<VertexRef> vertices = VerticesInOrder(heads);
  std::vector<std::string> names = NamesOf(vertices);
  for (const VertexRef& vertex : vertices) {
    const size_t id = graph.nodes.size();
    ids[vertex.get()] = static_cast<int>(id);
    graph.nodes.push_back(vertex->node);
    graph.nodes.back().name = std::move(names[id]);
    for (size_t i = 0; i < vertex->inputs.size(); ++i) {
      const NodeEntry input = entry(vertex->inputs[i]);
      graph.nodes.back().inputs.push_back(input);
      if (IsAuxiliary(*vertex, i))
        graph.nodes[static_cast<size_t>(input.node)].kind = Node::Kind::kAux;
    }
  }
  for (const Edge& head : heads) graph.heads.push_back(entry(head));
  return graph;
}

VertexRef MakeVariable(const std::string& name, const Attrs& attrs, const std::string& where) {
  if (name.empty())
    Throw(ErrorKind::kConfig, "a variable needs a name{}", where.empty() ? "" : " (" + where + ")");
  auto vertex = std::make_shared<Vertex>();
  vertex->node.kind = Node::Kind::kVariable;
  vertex->node.name = name;
  vertex->node.where = where;
  vertex->node.attrs = WithBareKeys(attrs);
  return vertex;
}

std::shared_ptr<const OperatorProperty> CreateProperty(const OperatorRegistry& registry,
                                                       std::string_view op, Kwargs kwargs,
                                                       const Node& node, size_t inputs) {
  std::string type(op);
  try {
    const std::unique_ptr<OperatorProperty> blank = registry.CreateUninitialized(op);
    type = blank->TypeString();
    RefuseInternal(registry, type);
    const std::string key = blank->NumArgsKey();
    const bool given =
        std::any_of(kwargs.begin(), kwargs.end(), [&](const auto& kv) { return kv.first == key; });
    if (!key.empty() && !given) kwargs.emplace_back(key, std::to_string(inputs));
    return registry.Create(op, kwargs);
  } catch (const Error& error) {
    throw Error(error.kind(), MessageAtNode(node, error.what(), type));
  }
}

VertexRef MakeOperator(Node node, std::vector<Edge> inputs,
                       std::shared_ptr<const GeneratedName> generated) {
  const OperatorProperty& op = *node.op;
  const std::vector<std::string> arguments = op.ListArguments(),
                                 auxiliaries = op.ListAuxiliaryStates();
  MXTRAIN_ASSERT(inputs.size() == arguments.size() + auxiliaries.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i].vertex) continue;
    const bool is_argument = i < arguments.size();
    const std::string& input = is_argument ? arguments[i] : auxiliaries[i - arguments.size()];
    Attrs attrs = AttrsForInput(node.attrs, input);
    std::erase_if(node.attrs, [&](const auto& attr) {
      const auto split = SplitInputKey(attr.first);
      return split && split->first == input;
    });
    const std::string init = is_argument ? op.DefaultInit(static_cast<int>(i)) : "";
    if (!init.empty()) attrs["__init__"] = init;
    auto variable =
        std::make_shared<Vertex>(*MakeVariable(node.name + "_" + input, attrs, node.where));
    variable->generated = generated;
    variable->suffix = "_" + input;
    inputs[i] = Edge{std::move(variable), 0};
  }
  auto vertex = std::make_shared<Vertex>();
  vertex->node = std::move(node);
  vertex->node.kind = Node::Kind::kForward;
  vertex->node.num_args = static_cast<int>(arguments.size());
  vertex->inputs = std::move(inputs);
  vertex->generated = std::move(generated);
  return vertex;
}

}  // namespace mxtrain
