// SPDX-License-Identifier: Apache-2.0
#pragma once
// The graph that Symbol composes and that the executor's passes rewrite: nodes in topological
// order. A pass takes a Graph and returns a new one; ids are positions and change with it, names do
// not.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Output `index` of node `node`; node < 0: none.
struct NodeEntry {
  int node = -1, index = 0;
  explicit operator bool() const { return node >= 0; }
  friend auto operator<=>(const NodeEntry&, const NodeEntry&) = default;
};

using Attrs = std::map<std::string, std::string>;

struct Node {
  // kVariable: an argument. kAux: an auxiliary state. kZeros: an array of zeros, without inputs.
  // The rest have inputs.
  enum class Kind : uint8_t { kVariable, kAux, kForward, kBackward, kReorder, kCopy, kZeros };
  Kind kind = Kind::kVariable;
  std::string name;   // unique; stable under rewriting, since it selects random streams
  std::string where;  // "net.yaml:31" for errors; may be empty
  // lr_mult, wd_mult, ctx_group, force_mirroring, mirror_stage (bare); __shape__, __dtype__,
  // __init__, ... (hidden).
  Attrs attrs;
  std::shared_ptr<const OperatorProperty> op;  // of kForward and kBackward

  // kForward: arguments, then auxiliary states. kReorder, kCopy: one. kBackward: see
  // executor/passes.h.
  std::vector<NodeEntry> inputs;
  int num_args = 0;  // kForward: how many of the inputs are arguments

  bool is_variable() const { return kind == Kind::kVariable || kind == Kind::kAux; }
};

// Number of outputs of a node of a forward graph, hidden ones included: 1 except for operators.
MXTRAIN_API int NumOutputs(const Node& node);
// How errors name a node: "Convolution 'conv1' (net.yaml:14)", "variable 'data'".
MXTRAIN_API std::string DescribeNode(const Node& node);
// An operator's message with its type replaced by the description: "Convolution: pad is ..." ->
// "Convolution 'conv1' (net.yaml:14): pad is ...". `type` is used before node.op exists.
MXTRAIN_API std::string MessageAtNode(const Node& node, const std::string& message,
                                      const std::string& type = "");

struct Graph {
  std::vector<Node> nodes;  // topological order
  std::vector<NodeEntry> heads;

  // Ids of the argument and auxiliary variables that the heads reach, in the order of the user's
  // symbol: depth first, inputs before the node.
  MXTRAIN_API std::vector<int> Arguments() const;
  MXTRAIN_API std::vector<int> Auxiliaries() const;
};

// Inferred shapes and types: [node][output].
struct InferredSpecs {
  std::vector<std::vector<TShape>> shapes;
  std::vector<std::vector<DType>> types;
  bool complete = false;  // every shape is known; types always are
};

// Infers in both directions until nothing changes. `shapes` and `types` hold what is known of
// variables by name; otherwise a variable's __shape__ and __dtype__ attributes apply (this binds a
// net to another batch size than its file says). Names without a variable are ignored.
// Contradictions throw kConfig with the node, its place, the contradicting shapes and their
// sources. Without `allow_partial`, unknown results also throw, naming the first such node and what
// would help.
//
// Types: when nothing more follows, the first variable of unknown type (in node order) is assumed
// float32 and inference continues; what remains (an operator without inputs) is float32. So one
// float16 input makes the adjacent parameters float16.
//
// For graphs of forward nodes, kReorder and kCopy, which keep shape and type; kBackward throws
// kBug. Linear in nodes for usual graphs.
MXTRAIN_API InferredSpecs InferSpecs(const Graph& graph,
                                     const std::map<std::string, TShape>& shapes,
                                     const std::map<std::string, DType>& types, bool allow_partial);

}  // namespace mxtrain
