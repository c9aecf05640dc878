#pragma once
// A symbolic expression: one or several outputs of a graph of operators and variables. A value: cheap to copy, immutable; composing makes a
// new one that shares the nodes of its inputs. Safe to read from several threads.
//
// Names are unique within a symbol; where two nodes with one name meet, kConfig names both and their places. The same Variable used twice
// is one node; two Variables of one name are two. Whether a variable is an argument or an auxiliary state follows from its reader; both
// throws.
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "mxtrain/symbol/graph.h"

namespace mxtrain {

class MXTRAIN_API Symbol {
 public:
  Symbol() = default;
  static Symbol Variable(const std::string& name, const Attrs& attrs = {}, const std::string& where = "");
  // Applies an operator. `inputs` fill the arguments by position (then the auxiliaries) and `named` by name; missing ones become variables
  // "NAME_argument" ("NAME_auxiliary") that take over `attrs`; a key "weight_lr_mult" is lr_mult of the missing argument "weight" alone. An
  // input with several outputs counts as that many positional inputs. A variadic operator's count of inputs is set when kwargs lack it.
  // An empty name is generated: `op` in lower case and the least counter from 0 that is free among the nodes of the inputs. There is no
  // global counter: two unnamed operators on one input get one name, and joining them throws; name them. `where` is the place in a file,
  // for errors. Operators that only fusing makes (_BatchNormActivation) are refused.
  // The cost of a node is the logarithm of the net, not its size (symbol/scope.h); inputs that were picked out of a group of several nodes
  // or out of internals are walked over once.
  static Symbol Create(const OperatorRegistry& registry, std::string_view op, const std::string& name, const Kwargs& kwargs,
                       std::span<const Symbol> inputs, const std::map<std::string, Symbol>& named = {}, const Attrs& attrs = {},
                       const std::string& where = "");
  static Symbol Group(std::span<const Symbol> symbols);

  // Replaces variables by other symbols' single outputs: composition. Names that no variable bears throw kConfig with the nearest. Nodes
  // that do not depend on a replaced variable are shared with this symbol, the rest are new ones of the same name.
  Symbol Compose(const std::map<std::string, Symbol>& replacements) const;

  int NumOutputs() const;
  Symbol operator[](int output) const;
  Symbol operator[](std::string_view output_name) const;
  Symbol GetInternals() const;  // every visible output of every node, auxiliary states left out
  std::string Name() const;     // of the node that all heads are outputs of; "" for groups of several

  std::vector<std::string> ListArguments() const;
  std::vector<std::string> ListOutputs() const;  // "fc1_output", "bn1_mean", "data"
  std::vector<std::string> ListAuxiliaryStates() const;
  // Attributes of the node that all heads are outputs of (groups throw kConfig); "" when absent. "lr_mult" and "__lr_mult__" are one key.
  std::string Attr(const std::string& key) const;
  Symbol WithAttr(const std::string& key, const std::string& value) const;  // the head's node is a new one
  std::map<std::string, Attrs> ListAttrs() const;                           // of all nodes that have any, by name

  struct Shapes {
    std::vector<TShape> arguments, outputs, auxiliaries;
    bool complete = false;
  };
  // Missing knowledge leaves unknown parts and complete == false; contradictions throw (symbol/graph.h), names that no variable bears too.
  Shapes InferShape(const std::map<std::string, TShape>& known) const;

  // Laid out at the first call, in depth-first post-order; lives as long as this symbol or a copy of it.
  const Graph& graph() const;

  // The reference system's files: the forms of 0.7, 0.8, 0.9 to 0.12 and 1.x are read with the upgrades that the reference system applies
  // (json_upgrade.h), the form of 1.9.1 is written, with every parameter. Writing what was read and reading it again is a fixed point.
  // Problems throw kData with the node: bad JSON, unknown operators, gradient nodes, subgraphs, Custom operators, cycles. Operators may
  // share a name in a file; the later get a suffix "_1", "_2", ...
  //
  // Files before 0.9 do not tell their version, and Pooling rounded its output size up in 0.7 ("full") and down from 0.8 on ("valid"):
  // `old_pooling_convention` is what a Pooling without `pooling_convention` means in such a file.
  std::string ToJson() const;
  static Symbol FromJson(const OperatorRegistry& registry, std::string_view json, const std::string& old_pooling_convention = "valid");

 private:
  struct Rep;
  explicit Symbol(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  const Rep& rep() const;
  std::shared_ptr<const Rep> rep_;  // null: no outputs
};

}  // namespace mxtrain
