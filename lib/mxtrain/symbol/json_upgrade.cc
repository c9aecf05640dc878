// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <set>

#include "mxtrain/symbol/internal/attrs.h"
#include "mxtrain/symbol/internal/json_file.h"
#include "mxtrain/symbol/internal/vertex.h"

namespace mxtrain {
namespace {

// The oldest files store "3 - x" as _MinusScalar with scalar_on_left.
void UpgradeScalarOnLeft(FileNode* node) {
  const auto found = node->params.find("scalar_on_left");
  if (found == node->params.end()) return;
  bool on_left = false;
  params::Parse(found->second, &on_left);
  node->params.erase(found);
  if (!on_left) return;
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kTurned = {
      {{"MinusScalar", "_RMinusScalar"},
       {"DivScalar", "_RDivScalar"},
       {"PowerScalar", "_RPowerScalar"}}};
  for (const auto& [name, turned] : kTurned) {
    if (node->op == "_" + std::string(name)) node->op = turned;
  }
}

void UpgradeParams(const FileGraph& graph, const std::string& old_pooling_convention,
                   FileNode* node) {
  if (graph.version < 900) {
    UpgradeScalarOnLeft(node);
    if (node->op == "_sample_uniform") node->op = "_random_uniform";
    if (node->op == "_sample_normal") node->op = "_random_normal";
  }
  if (node->op == "Pooling" && !graph.tells_version)
    node->params.try_emplace("pooling_convention", old_pooling_convention);
  if (graph.version < 905 && (node->op == "argmax" || node->op == "argmin")) {
    if (const auto axis = node->params.find("axis");
        axis != node->params.end() && axis->second == "-1")
      node->params.erase(axis);
  }
}

void MakeUniqueOperatorNames(FileGraph* graph) {
  std::set<std::string> taken;
  for (const FileNode& node : graph->nodes) {
    if (node.is_variable() && !taken.insert(node.name).second) {
      Throw(ErrorKind::kConfig,
            "two variables have the name '{}', so their arrays cannot be assigned", node.name);
    }
  }
  for (FileNode& node : graph->nodes) {
    if (node.is_variable()) continue;
    std::string name = node.name;
    for (int i = 1; !taken.insert(name).second; ++i) name = node.name + "_" + std::to_string(i);
    node.name = name;
  }
}

FileNode* VariableAt(FileGraph* graph, const FileNode& reader, size_t input) {
  if (input >= reader.inputs.size()) return nullptr;
  FileNode& node = graph->nodes[static_cast<size_t>(reader.inputs[input].node)];
  return node.is_variable() ? &node : nullptr;
}

// "weight_lr_mult" on an operator is lr_mult of its variable "weight"; it stays if that is not a
// variable.
void MoveInputAttrs(FileGraph* graph, FileNode* node) {
  const std::vector<std::string> arguments = node->property->ListArguments();
  std::erase_if(node->attrs, [&](const auto& attr) {
    const auto split = SplitInputKey(attr.first);
    if (!split) return false;
    const auto found = std::find(arguments.begin(), arguments.end(), split->first);
    if (found == arguments.end()) return false;
    FileNode* variable = VariableAt(graph, *node, static_cast<size_t>(found - arguments.begin()));
    if (variable) variable->attrs[split->second] = attr.second;
    return variable != nullptr;
  });
}

void AddDefaultInits(FileGraph* graph, const FileNode& node) {
  const size_t given = std::min(node.property->ListArguments().size(), node.inputs.size());
  for (size_t i = 0; i < given; ++i) {
    const std::string init = node.property->DefaultInit(static_cast<int>(i));
    FileNode* variable = init.empty() ? nullptr : VariableAt(graph, node, i);
    if (variable) variable->attrs.try_emplace("__init__", init);
  }
}

}  // namespace

void UpgradeSymbolFile(const OperatorRegistry& registry, const std::string& old_pooling_convention,
                       FileGraph* graph) {
  MakeUniqueOperatorNames(graph);
  for (size_t id = 0; id < graph->nodes.size(); ++id) {
    FileNode& node = graph->nodes[id];
    if (node.is_variable()) continue;
    UpgradeParams(*graph, old_pooling_convention, &node);
    Node described;
    described.name = node.name;
    described.where = format("node {}", id);
    node.property =
        CreateProperty(registry, node.op, Kwargs(node.params.begin(), node.params.end()), described,
                       node.inputs.size());
    MoveInputAttrs(graph, &node);
    if (graph->version < 904) AddDefaultInits(graph, node);
  }
}

}  // namespace mxtrain
