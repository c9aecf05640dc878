// SPDX-License-Identifier: Apache-2.0
// Symbol::FromJson and Symbol::ToJson.
#include "mxtrain/base/json.h"

#include "mxtrain/base/post_order.h"
#include "mxtrain/symbol/internal/attrs.h"
#include "mxtrain/symbol/internal/json_file.h"
#include "mxtrain/symbol/internal/symbol_rep.h"

namespace mxtrain {
namespace {

constexpr int kWrittenVersion = 10901;
// Inputs and outputs of all nodes; each takes memory during shape inference.
constexpr size_t kMostEntries = size_t{1} << 20;

// Vertices of a file's nodes, created after their inputs.
class FileBuilder {
 public:
  explicit FileBuilder(const FileGraph& file)
      : file_(file),
        vertices_(file.nodes.size()),
        visible_(file.nodes.size(), 1),
        entered_(file.nodes.size()) {}

  std::vector<Edge> Build() {
    std::vector<int> all(file_.nodes.size());
    for (size_t id = 0; id < all.size(); ++id) all[id] = static_cast<int>(id);
    PostOrder(
        all, [this](int id) { return At(id).inputs.size(); },
        [this](int id, size_t i) { return At(id).inputs[i].node; },
        [this](int id) { return Enter(static_cast<size_t>(id)); },
        [this](int id) { Make(static_cast<size_t>(id)); });
    std::vector<Edge> heads;
    for (const NodeEntry& head : file_.heads) heads.push_back(EdgeOf(head, kHead));
    return heads;
  }

 private:
  const FileNode& At(int id) const { return file_.nodes[static_cast<size_t>(id)]; }

  bool Enter(size_t id) {
    if (entered_[id] && !vertices_[id])
      Throw(ErrorKind::kData, "{} depends on itself: the nodes form a cycle",
            DescribeFileNode(file_, id));
    if (entered_[id]) return false;
    entered_[id] = true;
    return true;
  }

  void Make(size_t id) {
    const FileNode& from = file_.nodes[id];
    if (from.is_variable()) {
      vertices_[id] = MakeVariable(from.name, from.attrs, "");
      return;
    }
    const size_t wanted =
        from.property->ListArguments().size() + from.property->ListAuxiliaryStates().size();
    const bool may_lack = file_.version < 900 && from.property->NumArgsKey().empty();
    if (from.inputs.size() > wanted || (from.inputs.size() < wanted && !may_lack)) {
      Throw(ErrorKind::kData, "{} takes {} inputs, but has {}", DescribeFileNode(file_, id), wanted,
            from.inputs.size());
    }
    entries_ += wanted + static_cast<size_t>(from.property->NumOutputs());
    if (entries_ > kMostEntries)
      Throw(ErrorKind::kData, "{}: the file's nodes have more than {} inputs and outputs",
            DescribeFileNode(file_, id), kMostEntries);
    Node node;
    node.name = from.name;
    node.attrs = from.attrs;
    node.op = from.property;
    std::vector<Edge> inputs;
    for (const NodeEntry& input : from.inputs)
      inputs.push_back(EdgeOf(input, static_cast<int>(id)));
    inputs.resize(wanted);
    visible_[id] = from.property->NumVisibleOutputs();
    vertices_[id] = MakeOperator(std::move(node), std::move(inputs));
  }

  static constexpr int kHead = -1;

  // `reader`: the node that reads the entry, or kHead.
  Edge EdgeOf(NodeEntry entry, int reader) const {
    const VertexRef& vertex = vertices_[static_cast<size_t>(entry.node)];
    const int visible = visible_[static_cast<size_t>(entry.node)];
    if (entry.index >= visible) {
      Throw(ErrorKind::kData, "{} reads output {} of {}, which has {}",
            reader == kHead ? "a head" : DescribeFileNode(file_, static_cast<size_t>(reader)),
            entry.index, DescribeFileNode(file_, static_cast<size_t>(entry.node)), visible);
    }
    return {vertex, entry.index};
  }

  const FileGraph& file_;
  std::vector<VertexRef> vertices_;
  std::vector<int> visible_;  // outputs of each vertex: counting them may list them
  std::vector<bool> entered_;
  size_t entries_ = 0;
};

Json NodeToJson(const Node& node) {
  Json attrs = Json::object();
  if (node.op) {
    for (const auto& [key, value] : node.op->GetParams()) attrs[key] = value;
  }
  // Readers take only hidden keys as attributes if there are parameters; a variable has none.
  Attrs written;  // sorted by the written key, which is the order of the next reader
  for (const auto& [key, value] : node.attrs) {
    const bool stays_bare = node.is_variable() && BareKey(HiddenKey(key)) != key;
    written[stays_bare ? key : HiddenKey(key)] = AttrForFile(key, value);
  }
  for (const auto& [key, value] : written) attrs[key] = value;
  Json json;
  json["op"] = node.op ? node.op->TypeString() : "null";
  json["name"] = node.name;
  if (!attrs.empty()) json["attrs"] = std::move(attrs);
  json["inputs"] = Json::array();
  for (const NodeEntry& input : node.inputs) json["inputs"].push_back({input.node, input.index, 0});
  return json;
}

}  // namespace

Symbol Symbol::FromJson(const OperatorRegistry& registry, std::string_view json,
                        const std::string& old_pooling_convention) {
  FileGraph file = ParseSymbolFile(json);
  try {
    UpgradeSymbolFile(registry, old_pooling_convention, &file);
    std::vector<Edge> heads = FileBuilder(file).Build();
    Scope scope;
    scope.Add(heads);
    return Symbol(std::make_shared<Rep>(std::move(heads), std::move(scope)));
  } catch (const Error& error) {
    throw Error(ErrorKind::kData, std::string("symbol file: ") + error.what());
  }
}

std::string Symbol::ToJson() const {
  const Graph& g = graph();
  std::string nodes;
  Json arg_nodes = Json::array(), row_ptr = {0}, heads = Json::array();
  int outputs = 0;
  try {
    for (size_t id = 0; id < g.nodes.size(); ++id) {
      nodes += (id ? ",\n    " : "\n    ") + NodeToJson(g.nodes[id]).dump();
      if (g.nodes[id].is_variable()) arg_nodes.push_back(id);
      row_ptr.push_back(outputs += mxtrain::NumOutputs(g.nodes[id]));
    }
  } catch (const Json::exception& error) {
    Throw(ErrorKind::kData, "cannot write a name or an attribute of the symbol as JSON: {}",
          error.what());
  }
  for (const NodeEntry& head : g.heads) heads.push_back({head.node, head.index, 0});
  const Json version = {{"mxnet_version", {"int", kWrittenVersion}}};
  return format(
      "{{\n  \"nodes\": [{}\n  ],\n  \"arg_nodes\": {},\n  \"node_row_ptr\": {},\n  \"heads\": "
      "{},\n  \"attrs\": {}\n}}\n",
      nodes, arg_nodes.dump(), row_ptr.dump(), heads.dump(), version.dump());
}

}  // namespace mxtrain
