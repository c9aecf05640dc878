#pragma once
// A symbolic expression: one or several outputs of a graph of operators and variables. A value: cheap to copy, immutable; composing makes a new
// one. Safe to read from several threads.
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
  static Symbol Variable(const std::string& name, const Attrs& attrs = {});
  // Applies an operator. `inputs` fill the arguments by position and `named` by argument name; missing ones become variables "NAME_argument"
  // (auxiliaries "NAME_auxiliary"). An input with several outputs counts as that many positional inputs. An empty name is generated:
  // operator's name in lower case and a counter that is unique among the inputs' nodes. `where` is its place in a file, for errors.
  static Symbol Create(const OperatorRegistry& registry, std::string_view op, const std::string& name, const Kwargs& kwargs,
                       std::span<const Symbol> inputs, const std::map<std::string, Symbol>& named = {}, const Attrs& attrs = {},
                       const std::string& where = "");
  static Symbol Group(std::span<const Symbol> symbols);

  // Replaces variables by other symbols' single outputs: composition. Names that no variable bears throw kConfig with the nearest.
  Symbol Compose(const std::map<std::string, Symbol>& replacements) const;

  int NumOutputs() const;
  Symbol operator[](int output) const;
  Symbol operator[](std::string_view output_name) const;
  Symbol GetInternals() const;  // every visible output of every node
  std::string Name() const;     // of the single head's node; "" for groups

  std::vector<std::string> ListArguments() const;
  std::vector<std::string> ListOutputs() const;          // "fc1_output", "bn1_mean", "data"
  std::vector<std::string> ListAuxiliaryStates() const;
  // Attributes of the head's node; of all nodes by name.
  std::string Attr(const std::string& key) const;
  Symbol WithAttr(const std::string& key, const std::string& value) const;
  std::map<std::string, Attrs> ListAttrs() const;

  struct Shapes {
    std::vector<TShape> arguments, outputs, auxiliaries;
    bool complete = false;
  };
  // Missing knowledge leaves unknown parts and complete == false; contradictions throw (symbol/graph.h).
  Shapes InferShape(const std::map<std::string, TShape>& known) const;

  const Graph& graph() const { return *graph_; }

  // The reference system's files. Reads the forms of 0.7, 0.8 and 1.x with their upgrade rules, writes 1.x; writing what was read and
  // reading it again is a fixed point. Problems throw kData (bad JSON, unknown operators with the node's name).
  std::string ToJson() const;
  static Symbol FromJson(const OperatorRegistry& registry, std::string_view json);

 private:
  explicit Symbol(std::shared_ptr<const Graph> graph) : graph_(std::move(graph)) {}
  std::shared_ptr<const Graph> graph_;
};

}  // namespace mxtrain
