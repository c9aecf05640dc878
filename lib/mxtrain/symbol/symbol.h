// SPDX-License-Identifier: Apache-2.0
#pragma once
// A symbolic expression: one or more outputs of a graph of operators and variables. A value: cheap
// to copy, immutable; composing makes a new one that shares the nodes of its inputs. Safe to read
// from several threads.
//
// Names are unique within a symbol; if the user gave two nodes one name, kConfig names both and
// their places. A generated name is unique too: of two unnamed operators on one input, joined, the
// later one and its parameters get the next free counter in the joined symbol, and in what is made
// of it; ask that symbol for its names. Using the same Variable twice gives one node; two Variables
// of one name are two nodes. The reader of a variable determines whether it is an argument or an
// auxiliary state; being both throws.
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
  static Symbol Variable(const std::string& name, const Attrs& attrs = {},
                         const std::string& where = "");
  // Applies an operator. `inputs` fill the arguments by position (then the auxiliary states) and
  // `named` by name. Missing ones become variables "NAME_argument" ("NAME_auxiliary") that inherit
  // `attrs`; a key "weight_lr_mult" is lr_mult of the missing argument "weight" alone. An input
  // with several outputs counts as that many positional inputs. The input count of a variadic
  // operator is set if kwargs lack it. An empty name is generated: `op` in lower case and the least
  // counter from 0 that is free among the nodes of the inputs. `where` is the place in a file, for
  // errors. Operators that only fusion creates (_BatchNormActivation)
  // are rejected. A node costs the logarithm of the net, not its size (symbol/internal/scope.h);
  // inputs taken from a group of several nodes or from internals are walked once.
  static Symbol Create(const OperatorRegistry& registry, std::string_view op,
                       const std::string& name, const Kwargs& kwargs,
                       std::span<const Symbol> inputs,
                       const std::map<std::string, Symbol>& named = {}, const Attrs& attrs = {},
                       const std::string& where = "");
  static Symbol Group(std::span<const Symbol> symbols);

  // Replaces variables by single outputs of other symbols: composition. Names without a variable
  // throw kConfig with the nearest name. Nodes that do not depend on a replaced variable are shared
  // with this symbol; the rest are new nodes of the same name.
  Symbol Compose(const std::map<std::string, Symbol>& replacements) const;

  int NumOutputs() const;
  Symbol operator[](int output) const;
  Symbol operator[](std::string_view output_name) const;
  Symbol GetInternals() const;  // every visible output of every node, without auxiliary states
  std::string Name() const;  // of the node that all heads are outputs of; "" for groups of several

  std::vector<std::string> ListArguments() const;
  std::vector<std::string> ListOutputs() const;  // "fc1_output", "bn1_mean", "data"
  std::vector<std::string> ListAuxiliaryStates() const;
  // Attributes of the node that all heads are outputs of (groups throw kConfig); "" if absent.
  // "lr_mult" and "__lr_mult__" are one key.
  std::string Attr(const std::string& key) const;
  // The head's node is new.
  Symbol WithAttr(const std::string& key, const std::string& value) const;
  std::map<std::string, Attrs> ListAttrs() const;  // of all nodes that have any, by name

  struct Shapes {
    std::vector<TShape> arguments, outputs, auxiliaries;
    bool complete = false;
  };
  // Missing facts give unknown parts and complete == false. Contradictions (symbol/graph.h) and
  // names without a variable throw.
  Shapes InferShape(const std::map<std::string, TShape>& known) const;

  // Computed at the first call, in depth-first post-order; lives as long as this symbol or a copy
  // of it.
  const Graph& graph() const;

  // MXNet's files: formats 0.7, 0.8, 0.9 to 0.12 and 1.x are read with the upgrades that MXNet
  // applies (json_upgrade.h); format 1.9.1 is written, with every parameter. Writing what was read
  // and reading it again is a fixed point. Problems throw kData with the node: bad JSON, unknown
  // operators, gradient nodes, subgraphs, Custom operators, cycles. Operators may share a name in a
  // file; the later ones get a suffix "_1", "_2", ...
  //
  // Files before 0.9 have no version, and Pooling rounded its output size up in 0.7 ("full") and
  // down since 0.8 ("valid"): `old_pooling_convention` applies to a Pooling without
  // `pooling_convention` in such a file.
  std::string ToJson() const;
  static Symbol FromJson(const OperatorRegistry& registry, std::string_view json,
                         const std::string& old_pooling_convention = "valid");

 private:
  struct Rep;
  explicit Symbol(std::shared_ptr<const Rep> rep) : rep_(std::move(rep)) {}
  const Rep& rep() const;
  std::shared_ptr<const Rep> rep_;  // null: no outputs
};

}  // namespace mxtrain
