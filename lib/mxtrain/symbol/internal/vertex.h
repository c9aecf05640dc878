// SPDX-License-Identifier: Apache-2.0
#pragma once
// How a Symbol holds its graph: immutable vertices that share their inputs, so composing only adds
// vertices and identity is the address. Private to symbol/; others see the Graph that
// Symbol::graph() lays out.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

struct Vertex;
using VertexRef = std::shared_ptr<const Vertex>;

// Output `index` of a vertex; a null vertex: none.
struct Edge {
  VertexRef vertex;
  int index = 0;
};

// The name that an unnamed operator got. It, and the variables created for its missing inputs, may
// get another one in a symbol where another node has it.
struct GeneratedName {
  std::string hint;  // before the counter
  std::string name;
};

struct Vertex {
  // Its `inputs` stay empty here. Variables are kVariable: readers determine whether one is an
  // auxiliary state (scope.h, LayOut).
  Node node;
  std::vector<Edge> inputs;  // arguments, then auxiliary states
  // Null: the user named it. The operator shares this with the variables created for it, whose
  // names are that of the operator and `suffix`, "_weight".
  std::shared_ptr<const GeneratedName> generated;
  std::string suffix;

  Vertex() = default;
  Vertex(const Vertex&) = default;
  ~Vertex();  // releases long chains without recursion
};

// Which of an operator's inputs are arguments and which are auxiliary states.
bool IsAuxiliary(const Vertex& reader, size_t input);

// The vertices that the heads reach, in depth-first post-order, and the graph of nodes in that
// order.
std::vector<VertexRef> VerticesInOrder(std::span<const Edge> heads);
Graph LayOut(std::span<const Edge> heads);

// The names of the vertices of a graph, all different. Generated names are kept where they are
// free: what the user named comes first, then the earlier vertex. The others get the least free
// counter. Operators copied by composition have names of their own, but common variables.
std::vector<std::string> NamesOf(std::span<const VertexRef> vertices);

// The property of `op`, with the input count of a variadic one set to `inputs` if kwargs lack it.
// Errors name the node and its place.
std::shared_ptr<const OperatorProperty> CreateProperty(const OperatorRegistry& registry,
                                                       std::string_view op, Kwargs kwargs,
                                                       const Node& node, size_t inputs);

// What an operator's vertex is made of. `inputs` has an edge per argument and auxiliary state;
// absent ones become variables.
VertexRef MakeOperator(Node node, std::vector<Edge> inputs,
                       std::shared_ptr<const GeneratedName> generated = nullptr);
VertexRef MakeVariable(const std::string& name, const Attrs& attrs, const std::string& where);

}  // namespace mxtrain
