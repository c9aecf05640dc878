// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/onnx/standardization.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"

namespace mxtrain::onnx {
namespace {

class Conversion {
 public:
  explicit Conversion(Model* model) : model_(*model) {}

  void BehindInput(const std::string& name, const Standardization& units) {
    const auto input = std::ranges::find(model_.inputs, name, &ModelValue::name);
    Require(input != model_.inputs.end() && input->type == ElementType::kFloat,
            "an input of float32", name);
    const std::string inner = "standardized_" + name;
    for (ModelNode& node : model_.nodes) std::ranges::replace(node.inputs, name, inner);
    name_ = name;
    const std::string wide = Node("Cast", {name}, To(ElementType::kDouble));
    const std::string centred = Node("Sub", {wide, Constant("mean", units.mean, *input)});
    const std::string scaled = Node("Div", {centred, Constant("std", units.std, *input)});
    Node("Cast", {scaled}, To(ElementType::kFloat), inner);
  }

  void BeforeOutput(const std::string& name, const Standardization& units) {
    const auto output = std::ranges::find(model_.outputs, name, &ModelValue::name);
    Require(output != model_.outputs.end(), "an output", name);
    const std::string inner = "standardized_" + name;
    for (ModelNode& node : model_.nodes) {
      std::ranges::replace(node.inputs, name, inner);
      std::ranges::replace(node.outputs, name, inner);
    }
    name_ = name;
    const std::string wide = Node("Cast", {inner}, To(ElementType::kDouble));
    const std::string scaled = Node("Mul", {wide, Constant("std", units.std, *output)});
    const std::string moved = Node("Add", {scaled, Constant("mean", units.mean, *output)});
    Node("Cast", {moved}, To(ElementType::kFloat), name);
  }

 private:
  static void Require(bool good, const char* what, const std::string& name) {
    if (!good)
      Throw(ErrorKind::kConfig, "the standardization of '{}' needs {} of the model by this name",
            name, what);
  }
  static Attributes To(ElementType type) { return {{"to", static_cast<int64_t>(type)}}; }
  std::string Node(const std::string& op, const std::vector<std::string>& inputs,
                   const Attributes& attributes = {}, const std::string& output = "") {
    const std::string name = output.empty() ? format("units{}_{}", count_++, op) : output;
    model_.nodes.push_back({op, "units_" + name, "", inputs, {name}, attributes});
    return name;
  }
  // The numbers of an example, in the shape that it has.
  std::string Constant(const char* what, const std::vector<double>& values,
                       const ModelValue& value) {
    std::vector<int64_t> dims;
    if (values.size() > 1 && value.has_shape && !value.dims.empty())
      dims.assign(value.dims.begin() + 1, value.dims.end());
    Tensor tensor{ElementType::kDouble, dims, {}};
    Require(std::ranges::count(dims, ModelValue::kDynamic) == 0 &&
                tensor.Size() == static_cast<int64_t>(values.size()),
            "the shape of an example", name_);
    tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double));
    const std::string name = format("units_{}_{}", name_, what);
    Require(!model_.initializers.contains(name), "no array", name);
    model_.initializers[name] = std::move(tensor);
    return name;
  }

  Model& model_;
  std::string name_;  // of the value that is converted
  int count_ = 0;
};

}  // namespace

void AddStandardization(const std::map<std::string, Standardization>& inputs,
                        const std::map<std::string, Standardization>& outputs, Model* model) {
  Conversion conversion(model);
  for (const auto& [name, units] : inputs) conversion.BehindInput(name, units);
  for (const auto& [name, units] : outputs) conversion.BeforeOutput(name, units);
}

}  // namespace mxtrain::onnx
