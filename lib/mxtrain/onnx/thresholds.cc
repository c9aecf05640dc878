// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/thresholds.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

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

void AddNode(const char* op, const std::string& scores, std::vector<std::string> inputs,
             const std::string& output, const Attributes& attributes, Model* model) {
  model->nodes.push_back({op,
                          format("{}{}_{}", kPrefixOfThresholds, scores, output),
                          "",
                          std::move(inputs),
                          {output},
                          attributes});
}

Attributes CastTo(ElementType type) {
  return {{"to", static_cast<int64_t>(type)}};
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
    labels.name = thresholds.size() == 1 ? "labels" : scores + "_labels";
    while (HasValue(*model, labels.name)) labels.name += '_';
    labels.type = ElementType::kInt64;
    Tensor tensor{ElementType::kDouble, {classes}, {}};
    tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double));
    const std::string of = kPrefixOfThresholds + scores, wide = of + "_wide", there = of + "_there";
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
  for (const ModelNode& node : model->nodes) {
    if (!node.name.starts_with(kPrefixOfThresholds)) continue;
    std::erase_if(model->outputs, [&node](const ModelValue& output) {
      return std::ranges::find(node.outputs, output.name) != node.outputs.end();
    });
  }
  std::erase_if(model->nodes,
                [](const ModelNode& node) { return node.name.starts_with(kPrefixOfThresholds); });
  std::erase_if(model->initializers,
                [](const auto& array) { return array.first.starts_with(kPrefixOfThresholds); });
}

}  // namespace mxtrain::onnx
