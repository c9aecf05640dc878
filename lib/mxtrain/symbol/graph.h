#pragma once
// The graph that Symbol composes and that the executor's passes rewrite: nodes in topological order, each the inputs of later ones. A pass
// takes a Graph and returns a new one; ids are positions and change with it, names do not.
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
  // kVariable: an argument. kAux: an auxiliary state. kZeros: no inputs, an array of zeros. The rest have inputs.
  enum class Kind : uint8_t { kVariable, kAux, kForward, kBackward, kReorder, kCopy, kZeros };
  Kind kind = Kind::kVariable;
  std::string name;   // unique; stable under rewriting: random streams hang on it
  std::string where;  // "net.yaml:31" for errors; may be empty
  Attrs attrs;        // lr_mult, wd_mult, ctx_group, force_mirroring, mirror_stage (bare); __shape__, __dtype__, __init__, ... (hidden)
  std::shared_ptr<const OperatorProperty> op;  // of kForward and kBackward

  // kForward: arguments, then auxiliary states. kReorder, kCopy: one. kBackward: see executor/passes.h.
  std::vector<NodeEntry> inputs;
  int num_args = 0;  // kForward: how many of the inputs are arguments

  bool is_variable() const { return kind == Kind::kVariable || kind == Kind::kAux; }
};

// Outputs of a node of a forward graph, hidden ones included: 1 but for operators.
MXTRAIN_API int NumOutputs(const Node& node);
// How errors speak of a node: "Convolution 'conv1' (net.yaml:14)", "variable 'data'".
MXTRAIN_API std::string DescribeNode(const Node& node);
// An operator's own message with its type replaced by the description: "Convolution: pad is ..." -> "Convolution 'conv1' (net.yaml:14): pad
// is ...". `type` serves while node.op is not made yet.
MXTRAIN_API std::string MessageAtNode(const Node& node, const std::string& message, const std::string& type = "");

struct Graph {
  std::vector<Node> nodes;  // topological order
  std::vector<NodeEntry> heads;

  // Ids of the argument and auxiliary variables that the heads reach, in the order of the user's symbol: depth first, inputs before the
  // node.
  MXTRAIN_API std::vector<int> Arguments() const;
  MXTRAIN_API std::vector<int> Auxiliaries() const;
};

// What is known and found about shapes and types: [node][output].
struct InferredSpecs {
  std::vector<std::vector<TShape>> shapes;
  std::vector<std::vector<DType>> types;
  bool complete = false;  // every shape is known; types always are
};

// Infers in both directions until nothing changes. `shapes` and `types` hold what is known of variables by name; where they say nothing, a
// variable's __shape__ and __dtype__ attributes do (so a net is bound to another batch size than its file names). Names that no variable
// bears are passed over. Contradictions throw kConfig with node, its place, the shapes that met and their sources. With `allow_partial`
// false, what stays unknown throws too, naming the first such node and what would help.
//
// Types: when nothing more follows, the first variable of unknown type (in the order of the nodes) is taken for float32 and inference goes
// on; what then still has none (an operator without inputs) is float32. So one float16 input makes the parameters beside it float16.
//
// Graphs of forward nodes, and of kReorder and kCopy, which keep shape and type; kBackward throws kBug. Linear in nodes for usual graphs.
MXTRAIN_API InferredSpecs InferSpecs(const Graph& graph, const std::map<std::string, TShape>& shapes,
                                     const std::map<std::string, DType>& types, bool allow_partial);

}  // namespace mxtrain
