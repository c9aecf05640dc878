#pragma once
// How a Symbol holds its graph: immutable vertices that share their inputs, so that composing makes new vertices only and identity is the
// address. Private to symbol/; others see the Graph that Symbol::graph() lays out.
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
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

struct Vertex {
  // Its `inputs` stay empty here. Variables are kVariable: whether one is an auxiliary state follows from its readers, in Scope and LayOut.
  Node node;
  std::vector<Edge> inputs;  // arguments, then auxiliary states

  Vertex() = default;
  Vertex(const Vertex&) = default;
  ~Vertex();  // releases long chains without recursion
};

// The names within reach of some edges and what bears them. Building it checks what every symbol promises: unique names, and variables that
// are arguments or auxiliary states but not both. Costs a walk over the vertices.
class Scope {
 public:
  // Throws kConfig naming both bearers of a name and their places.
  void Add(std::span<const Edge> roots);
  bool Has(const std::string& name) const { return bearers_.contains(name); }

 private:
  struct Bearer {
    const Vertex* vertex = nullptr;
    const Vertex* argument_of = nullptr;   // a reader, when read as an argument
    const Vertex* auxiliary_of = nullptr;  // a reader, when it is an auxiliary state
  };
  bool Enter(const Vertex* vertex);
  void NoteRoles(const Vertex* reader);
  std::unordered_map<std::string_view, Bearer> bearers_;
};

// The vertices that the heads reach, in depth-first post-order, and the graph whose nodes they are in that order.
std::vector<VertexRef> VerticesInOrder(std::span<const Edge> heads);
Graph LayOut(std::span<const Edge> heads);

// The property of `op`, a variadic one's count of inputs set to `inputs` where kwargs lack it. Errors name the node and its place.
std::shared_ptr<const OperatorProperty> CreateProperty(const OperatorRegistry& registry, std::string_view op, Kwargs kwargs,
                                                       const Node& node, size_t inputs);

// What an operator's vertex is made of. `inputs` has an edge per argument and auxiliary state; absent ones become variables.
VertexRef MakeOperator(Node node, std::vector<Edge> inputs);
VertexRef MakeVariable(const std::string& name, const Attrs& attrs, const std::string& where);

}  // namespace mxtrain
