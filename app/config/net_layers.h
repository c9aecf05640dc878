#pragma once
// The net written out: blocks and repeats expanded, expressions evaluated, names given. Between net_expand.cc, which makes it, and
// net_build.cc, which makes a Symbol of it.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "app/config/expression.h"
#include "app/config/net.h"

namespace mxtrain::config {

// "NAME" or "NAME.OUTPUT", as written, and the scope in which it means something.
struct Reference {
  std::string text;
  Place place;
  int scope = 0;
  std::vector<std::string> notes;
};

// What a name stands for. Indices are into WrittenNet's lists.
struct Entry {
  enum class Kind { kNone, kBroken, kInput, kVariable, kLayer, kOutside, kBlock };
  Kind kind = Kind::kNone;
  int index = -1;                       // kInput, kVariable, kLayer; kBlock: the scope inside
  std::vector<Reference> outside = {};  // kOutside: a block's input, by its name in the scope around it
};

struct Scope {
  int parent = -1;
  std::string prefix;  // of the names of nodes
  std::map<std::string, Entry, std::less<>> names;
  std::map<std::string, Place, std::less<>> places;
  std::map<std::string, Constant> constants;
  std::vector<Reference> outputs;  // of a block, by the names inside; empty: what its last layer gives
  Entry last;                      // what the last layer gives
};

struct LayerInput {
  Entry entry;  // the layer before, when `named` is empty
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
  std::vector<Member> params;                            // expanded
  std::vector<std::pair<std::string, Reference>> named;  // argument -> what it takes; the place is that of the value
  std::vector<Place> named_keys;                         // of the keys of `named`
  std::vector<bool> named_texts;                         // whether the value could be the name of something
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

WrittenNet ExpandNet(const Config& config, const OperatorRegistry& registry, const BuiltinValues& builtins, Diagnostics* diagnostics);

// A member of a scope by name, seen from inside: its own, then Variables of the scopes around it. Null when there is none.
const Entry* FindEntry(const WrittenNet& net, int scope, std::string_view name);
// The names that FindEntry knows, for "did you mean".
std::vector<std::string> KnownNames(const WrittenNet& net, int scope);

// A layer's parameters as the operator reads them, or nothing after findings. `rank`: spatial axes of its first input.
std::optional<Kwargs> ReadParams(const Layer& layer, const std::vector<FieldInfo>& fields, const std::string& num_args_key, int rank,
                                 Diagnostics* diagnostics);
// The finding for a key that is neither a parameter nor an argument.
void ReportUnknownParam(const Layer& layer, const std::string& key, const Place& place, const std::vector<FieldInfo>& fields,
                        const std::vector<std::string>& arguments, Diagnostics* diagnostics);

}  // namespace mxtrain::config
