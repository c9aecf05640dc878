// SPDX-License-Identifier: Apache-2.0
#pragma once
// The expanded net: blocks and repeats expanded, expressions evaluated, names assigned. Made by
// net_expand.cc; net_build.cc turns it into a Symbol, layer by layer.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/config/expression.h"
#include "app/config/net.h"

namespace mxtrain::config {

// "NAME" or "NAME.OUTPUT", as written, and the scope to resolve it in.
struct Reference {
  std::string text;
  Place place;
  int scope = 0;
  std::vector<std::string> notes;
};

// What a name refers to. Indices are into WrittenNet's lists.
struct Entry {
  enum class Kind { kNone, kBroken, kInput, kVariable, kLayer, kOutside, kBlock };
  Kind kind = Kind::kNone;
  int index = -1;  // kInput, kVariable, kLayer; kBlock: the scope inside
  // kOutside: a block's input, by its name in the scope around it.
  std::vector<Reference> outside = {};
};
// Of something whose error has been reported.
inline Entry BrokenEntry() {
  return {Entry::Kind::kBroken, -1, {}};
}

struct Scope {
  int parent = -1;
  std::string prefix;  // of the names of nodes
  std::map<std::string, Entry, std::less<>> names;
  std::map<std::string, Place, std::less<>> places;
  std::map<std::string, Constant> constants;
  // Of a block, by the names inside; empty: the output of its last layer.
  std::vector<Reference> outputs;
  Entry last;  // the output of the last layer
};

struct LayerInput {
  Entry entry;  // the previous layer, if `named` is empty
  std::optional<Reference> named;
};

// One application of an operator.
struct Layer {
  std::string op;       // canonical
  std::string written;  // as the file says it
  std::string name;     // of the node, with its prefix
  Place place;
  std::vector<std::string> notes;
  int scope = 0;
  std::vector<LayerInput> inputs;
  std::vector<Member> params;  // expanded
  // Argument -> its source; the place is that of the value.
  std::vector<std::pair<std::string, Reference>> named;
  std::vector<Place> named_keys;  // of the keys of `named`
  std::vector<bool> named_texts;  // whether the value could be a name
  Attrs attrs;
  Place attrs_place;
};

// A declared parameter.
struct WrittenVariable {
  std::string name;
  Place place;
  std::vector<std::string> notes;
  Attrs attrs;
};

struct WrittenNet {
  std::vector<Scope> scopes;  // 0: the net itself
  std::vector<NetInput> inputs;
  int num_data = 0;  // inputs from here on are declared labels
  std::vector<WrittenVariable> variables;
  std::vector<Layer> layers;
  std::vector<Reference> outputs;  // net.outputs
};

WrittenNet ExpandNet(const Config& config, const OperatorRegistry& registry,
                     const BuiltinValues& builtins, Diagnostics* diagnostics);

// A name as seen from inside a scope: its own members, then Variables of the enclosing scopes. Null
// if there is none.
const Entry* FindEntry(const WrittenNet& net, int scope, std::string_view name);
// The names that FindEntry finds, for "did you mean".
std::vector<std::string> KnownNames(const WrittenNet& net, int scope);

// A layer's parameters as the operator reads them, or nothing after errors. `rank`: spatial axes of
// its first input.
std::optional<Kwargs> ReadParams(const Layer& layer, const std::vector<FieldInfo>& fields,
                                 const std::string& num_args_key, int rank,
                                 Diagnostics* diagnostics);
// The operator with these parameters; null after an error, reported at the parameter that it is
// about.
std::shared_ptr<const OperatorProperty> MakeProperty(const Layer& layer, const Kwargs& kwargs,
                                                     const OperatorRegistry& registry,
                                                     Diagnostics* diagnostics);
// Reports a key that is neither a parameter nor an argument.
void ReportUnknownParam(const Layer& layer, const std::string& key, const Place& place,
                        const std::vector<FieldInfo>& fields,
                        const std::vector<std::string>& arguments, Diagnostics* diagnostics);

}  // namespace mxtrain::config
