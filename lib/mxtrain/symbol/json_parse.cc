// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "mxtrain/base/read_json.h"
#include "mxtrain/symbol/internal/attrs.h"
#include "mxtrain/symbol/internal/json_file.h"

namespace mxtrain {
namespace {

// Every head has its own names, labels and predictions, so the same one many times over would make
// a small file expensive.
constexpr size_t kMostHeads = 4096;

template <typename... Args>
[[noreturn]] void Bad(fmt::format_string<Args...> text, Args&&... args) {
  throw Error(ErrorKind::kData, "symbol file: " + fmt::format(text, std::forward<Args>(args)...));
}

const FileJson& Member(const FileJson& object, const char* key, FileJson::value_t type,
                       const std::string& of) {
  const auto found = object.find(key);
  if (found == object.end()) Bad("{} has no \"{}\"", of, key);
  if (found->type() != type)
    Bad("\"{}\" of {} is {}, but {} was expected", key, of, found->type_name(),
        FileJson(type).type_name());
  return *found;
}

int Integer(const FileJson& value, const std::string& of) {
  const std::optional<int64_t> integer = IntegerIn(value, -1, 1'000'000'000);
  if (!integer) Bad("{}: a small integer was expected, got {}", of, value.type_name());
  return static_cast<int>(*integer);
}

// [node, output] or [node, output, version].
NodeEntry Entry(const FileJson& value, size_t nodes, const std::string& of) {
  if (!value.is_array() || value.size() < 2 || value.size() > 3)
    Bad("{}: an entry is [node, output] or [node, output, version]", of);
  const NodeEntry entry{Integer(value[0], of), Integer(value[1], of)};
  if (value.size() == 3) Integer(value[2], of);
  if (entry.node < 0 || static_cast<size_t>(entry.node) >= nodes)
    Bad("{}: there is no node {}; the file has {}", of, entry.node, nodes);
  if (entry.index < 0) Bad("{}: invalid output {}", of, entry.index);
  return entry;
}

Attrs Strings(const FileJson& node, const char* key, const std::string& of) {
  Attrs strings;
  const auto found = node.find(key);
  if (found == node.end()) return strings;
  if (!found->is_object())
    Bad("\"{}\" of {} is {}, but an object was expected", key, of, found->type_name());
  for (const auto& [name, value] : found->items()) {
    if (!value.is_string())
      Bad("\"{}\" of {}: '{}' is {}, but a string was expected", key, of, name, value.type_name());
    strings[name] = value.get<std::string>();
  }
  return strings;
}

// Splits the entries of param, attr and attrs into the operator's parameters and the user's
// attributes. If `param` exists it holds the parameters and the rest are attributes; else an entry
// is a parameter unless its key says otherwise.
void SortEntries(const FileJson& json, const std::string& of, FileNode* node) {
  const bool old_form = json.contains("param");
  node->params = Strings(json, "param", of);
  for (const char* key : {"attr", "attrs"}) {
    for (const auto& [name, value] : Strings(json, key, of)) {
      const std::string bare = BareKey(name);
      const auto keys = BareKeys();
      const bool is_attribute = old_form || IsHiddenKey(name) ||
                                std::find(keys.begin(), keys.end(), bare) != keys.end() ||
                                SplitInputKey(name);
      (is_attribute || node->is_variable() ? node->attrs : node->params)[bare] = value;
    }
  }
}

FileNode ParseNode(const FileJson& json, size_t id, size_t count) {
  const std::string number = format("node {}", id);
  if (!json.is_object()) Bad("{} is {}, but an object was expected", number, json.type_name());
  FileNode node;
  node.name = Member(json, "name", FileJson::value_t::string, number).get<std::string>();
  if (node.name.empty()) Bad("{} has an empty name", number);
  const std::string of = format("{} '{}'", number, node.name);
  node.op = Member(json, "op", FileJson::value_t::string, of).get<std::string>();
  if (node.op.empty()) Bad("{} has an empty operator name; variables have \"null\"", of);
  if (node.op == "null") node.op.clear();
  if (const auto source = json.find("backward_source_id");
      source != json.end() && Integer(*source, of) != -1) {
    Bad("{} ({}) is part of a gradient graph; save the symbol of the forward net", of, node.op);
  }
  for (const char* key : {"subgraphs", "control_deps"}) {
    if (const auto found = json.find(key); found != json.end() && !found->empty())
      Bad("{} ({}) has {}, which are not supported", of, node.op, key);
  }
  if (node.op == "Custom" || node.op == "_Native" || node.op == "_NDArray") {
    const Attrs params = Strings(json,
                                 json.contains("param")   ? "param"
                                 : json.contains("attrs") ? "attrs"
                                                          : "attr",
                                 of);
    const auto type = params.find("op_type");
    Bad("{} is a custom operator defined outside the file ({}{}{}); implement it as an operator of "
        "this library",
        of, node.op, type == params.end() ? "" : ", op_type ",
        type == params.end() ? "" : type->second);
  }
  SortEntries(json, of, &node);
  for (const FileJson& input : Member(json, "inputs", FileJson::value_t::array, of))
    node.inputs.push_back(Entry(input, count, "inputs of " + of));
  if (node.is_variable() && !node.inputs.empty()) Bad("{} is a variable, but has inputs", of);
  return node;
}

// attrs: {"mxnet_version": ["int", 10901]}
void ParseVersion(const FileJson& file, FileGraph* graph) {
  const auto attrs = file.find("attrs");
  if (attrs == file.end() || !attrs->is_object() || !attrs->contains("mxnet_version")) return;
  const FileJson& version = (*attrs)["mxnet_version"];
  if (!version.is_array() || version.size() != 2)
    Bad("\"mxnet_version\" is invalid; expected [\"int\", 10901]");
  graph->version = Integer(version[1], "mxnet_version");
  graph->tells_version = true;
}

}  // namespace

std::string DescribeFileNode(const FileGraph& graph, size_t id) {
  const FileNode& node = graph.nodes[id];
  return format("node {}, {} '{}'", id, node.is_variable() ? "variable" : node.op, node.name);
}

FileGraph ParseSymbolFile(std::string_view json) {
  const Expected<FileJson, Refusal> read = ReadJson<FileJson>(json);
  if (!read) Bad("invalid JSON: {}", read.error().reason);
  const FileJson& file = *read;
  if (!file.is_object()) Bad("the file contains {}, but an object was expected", file.type_name());
  FileGraph graph;
  ParseVersion(file, &graph);
  const FileJson& nodes = Member(file, "nodes", FileJson::value_t::array, "the file");
  for (const FileJson& node : nodes)
    graph.nodes.push_back(ParseNode(node, graph.nodes.size(), nodes.size()));
  const FileJson& heads = Member(file, "heads", FileJson::value_t::array, "the file");
  if (heads.size() > kMostHeads)
    Bad("the file has {} heads; at most {} are supported", heads.size(), kMostHeads);
  for (const FileJson& head : heads) graph.heads.push_back(Entry(head, nodes.size(), "heads"));
  if (graph.heads.empty()) Bad("the file has no heads: nothing would be computed");
  return graph;
}

}  // namespace mxtrain
