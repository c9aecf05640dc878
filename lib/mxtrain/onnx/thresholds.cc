// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/thresholds.h"

#include <algorithm>
#include <optional>
#include <set>
#include <string_view>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/read_json.h"

namespace mxtrain::onnx {
namespace {

constexpr const char* kPrefixOfThresholds = "thresholds_";

bool HasValue(const Model& model, const std::string& name) {
  const auto is_it = [&name](const ModelValue& value) { return value.name == name; };
  return model.initializers.contains(name) || std::ranges::any_of(model.inputs, is_it) ||
         std::ranges::any_of(model.outputs, is_it) ||
         std::ranges::any_of(model.nodes, [&name](const ModelNode& node) {
           return std::ranges::find(node.outputs, name) != node.outputs.end();
         });
}

std::string FreeValue(const Model& model, std::string name) {
  while (HasValue(model, name)) name += '_';
  return name;
}

void AddNode(const char* op, const std::string& scores, std::vector<std::string> inputs,
             const std::string& output, const Attributes& attributes, Model* model) {
  std::string name = format("{}{}_{}", kPrefixOfThresholds, scores, output);
  while (std::ranges::find(model->nodes, name, &ModelNode::name) != model->nodes.end()) name += '_';
  model->nodes.push_back({op, std::move(name), "", std::move(inputs), {output}, attributes});
}

Attributes CastTo(ElementType type) {
  return {{"to", static_cast<int64_t>(type)}};
}

// Those in the metadata; none of a file that has none, or something else by this name.
OutputThresholds ThresholdsIn(const Model& model) {
  const auto text = model.metadata.find("thresholds");
  if (text == model.metadata.end()) return {};
  const Expected<FileJson, Refusal> json = ReadJson<FileJson>(text->second);
  if (!json || !json->is_object()) return {};
  OutputThresholds thresholds;
  for (const auto& [scores, values] : json->items()) {
    const auto is_number = [](const FileJson& value) { return value.is_number(); };
    if (!values.is_array() || !std::ranges::all_of(values, is_number)) return {};
    thresholds[scores] = values.get<std::vector<double>>();
  }
  return thresholds;
}

bool IsNode(const ModelNode& node, std::string_view op, size_t inputs) {
  return node.domain.empty() && node.op == op && node.inputs.size() == inputs &&
         node.outputs.size() == 1;
}
bool IsCastTo(ElementType type, const ModelNode& node) {
  if (!IsNode(node, "Cast", 1) || node.attributes.size() != 1) return false;
  const auto to = node.attributes.find("to");
  if (to == node.attributes.end()) return false;
  const auto* const number = std::get_if<int64_t>(&to->second);
  return number && *number == static_cast<int64_t>(type);
}

// The one node that reads a value; null: none or several.
const ModelNode* OnlyReader(const Model& model, const std::string& value) {
  const ModelNode* reader = nullptr;
  for (const ModelNode& node : model.nodes) {
    if (std::ranges::find(node.inputs, value) == node.inputs.end()) continue;
    if (reader) return nullptr;
    reader = &node;
  }
  return reader;
}

// What AddThresholds added for one output of scores.
struct AddedNodes {
  std::set<std::string> values;  // that the nodes compute
  std::string bounds;            // initializer
};

std::optional<AddedNodes> FindAdded(const Model& model, const std::string& scores,
                                    const std::vector<double>& thresholds) {
  for (const ModelNode& wide : model.nodes) {
    if (!IsCastTo(ElementType::kDouble, wide) || wide.inputs[0] != scores) continue;
    const ModelNode* const there = OnlyReader(model, wide.outputs[0]);
    if (!there || !IsNode(*there, "GreaterOrEqual", 2) || there->inputs[0] != wide.outputs[0])
      continue;
    const auto bounds = model.initializers.find(there->inputs[1]);
    if (bounds == model.initializers.end() || bounds->second.type != ElementType::kDouble ||
        bounds->second.Doubles() != thresholds || OnlyReader(model, bounds->first) != there)
      continue;
    const ModelNode* const labels = OnlyReader(model, there->outputs[0]);
    if (!labels || !IsCastTo(ElementType::kInt64, *labels) ||
        std::ranges::find(model.outputs, labels->outputs[0], &ModelValue::name) ==
            model.outputs.end())
      continue;
    return AddedNodes{{wide.outputs[0], there->outputs[0], labels->outputs[0]}, bounds->first};
  }
  return std::nullopt;
}

}  // namespace

std::map<std::string, std::string> AddThresholds(const OutputThresholds& thresholds, Model* model) {
  std::map<std::string, std::string> names;
  for (const auto& [scores, values] : thresholds) {
    const auto found = std::ranges::find(model->outputs, scores, &ModelValue::name);
    if (found == model->outputs.end())
      Throw(ErrorKind::kConfig, "thresholds of '{}': the model has no such output", scores);
    const auto classes = std::ssize(values);
    if (found->has_shape && !found->dims.empty() && found->dims.back() != ModelValue::kDynamic &&
        found->dims.back() != classes) {
      Throw(ErrorKind::kConfig, "{} of '{}', which has {}", Counted(classes, "threshold"), scores,
            Counted(found->dims.back(), "class"));
    }
    ModelValue labels = *found;
    labels.name = FreeValue(*model, thresholds.size() == 1 ? "labels" : scores + "_labels");
    labels.type = ElementType::kInt64;
    Tensor tensor{ElementType::kDouble, {classes}, {}};
    tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double));
    const std::string of = FreeValue(*model, kPrefixOfThresholds + scores),
                      wide = FreeValue(*model, kPrefixOfThresholds + scores + "_wide"),
                      there = FreeValue(*model, kPrefixOfThresholds + scores + "_there");
    model->initializers[of] = std::move(tensor);
    AddNode("Cast", scores, {scores}, wide, CastTo(ElementType::kDouble), model);
    AddNode("GreaterOrEqual", scores, {wide, of}, there, {}, model);
    AddNode("Cast", scores, {there}, labels.name, CastTo(ElementType::kInt64), model);
    names[scores] = labels.name;
    model->outputs.push_back(std::move(labels));
  }
  return names;
}

void RemoveThresholds(Model* model) {
  for (const auto& [scores, values] : ThresholdsIn(*model)) {
    const std::optional<AddedNodes> added = FindAdded(*model, scores, values);
    if (!added) continue;
    std::erase_if(model->outputs, [&added](const ModelValue& output) {
      return added->values.contains(output.name);
    });
    std::erase_if(model->nodes, [&added](const ModelNode& node) {
      return node.outputs.size() == 1 && added->values.contains(node.outputs[0]);
    });
    model->initializers.erase(added->bounds);
  }
}

}  // namespace mxtrain::onnx
