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

  void BehindInput(const std::string& name, const Standardization& units, bool fills_missing) {
    const auto input = std::ranges::find(model_.inputs, name, &ModelValue::name);
    Require(input != model_.inputs.end() && input->type == ElementType::kFloat,
            "an input of float32", name);
    const std::string inner = "standardized_" + name;
    for (ModelNode& node : model_.nodes) std::ranges::replace(node.inputs, name, inner);
    name_ = name;
    const std::string wide = Node("Cast", {name}, To(ElementType::kDouble));
    const std::string moved = Transformed(wide, units.transforms, *input);
    const std::string centred = Node("Sub", {moved, Constant("mean", units.mean, *input)});
    std::string scaled = Node("Div", {centred, Constant("std", units.std, *input)});
    if (fills_missing) {
      scaled = Node("Where", {Node("IsNaN", {wide}), Constant("missing", {0}, *input), scaled});
    }
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
    for (const ColumnTransform& transform : units.transforms)
      Require(transform.kind != ColumnTransform::kQuantile, "no quantiles of an output", name);
    const std::string restored =
        Where(ColumnTransform::kLog, "Exp", moved, units.transforms, *output);
    Node("Cast", {restored}, To(ElementType::kFloat), name);
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
  std::string Transformed(const std::string& wide, const std::vector<ColumnTransform>& transforms,
                          const ModelValue& value) {
    const std::string logs = Where(ColumnTransform::kLog, "Log", wide, transforms, value);
    size_t knots = 0;
    for (const ColumnTransform& transform : transforms)
      knots = std::max(knots, transform.from.size());
    if (knots == 0) return logs;
    // to[0] + sum over the pieces of slope * min(max(x - from, 0), width), of columns of quantiles
    const size_t pieces = knots - 1;
    std::vector<double> from, width, slope, first, others;
    for (const ColumnTransform& transform : transforms) {
      const bool here = transform.kind == ColumnTransform::kQuantile;
      others.push_back(here ? 0 : 1);
      first.push_back(here ? transform.to[0] : 0);
      for (size_t i = 0; i < pieces; ++i) {
        const bool piece = here && i + 1 < transform.from.size();
        from.push_back(piece ? transform.from[i] : 0);
        width.push_back(piece ? transform.from[i + 1] - transform.from[i] : 0);
        slope.push_back(piece ? (transform.to[i + 1] - transform.to[i]) / width.back() : 0);
      }
    }
    const auto last = static_cast<int64_t>(pieces);
    std::vector<int64_t> split = {0}, axis = {static_cast<int64_t>(value.dims.size())};
    split.insert(split.end(), value.dims.begin() + 1, value.dims.end());
    split.push_back(1);
    const std::string each = Node("Reshape", {wide, Integers("split", split)});
    const std::string beyond = Node("Sub", {each, Constant("knots", from, value, last)});
    const std::string zero = Constant("zero", {0}, value);
    const std::string inside =
        Node("Min", {Node("Max", {beyond, zero}), Constant("widths", width, value, last)});
    const std::string risen = Node("Mul", {inside, Constant("slopes", slope, value, last)});
    const std::string sum =
        Node("ReduceSum", {risen, Integers("pieces", axis)}, {{"keepdims", int64_t{0}}});
    const std::string ranks = Node("Add", {sum, Constant("first", first, value)});
    if (std::ranges::count(others, 1.0) == 0) return ranks;
    return Node("Add", {ranks, Node("Mul", {logs, Constant("others", others, value)})});
  }

  // The function of the columns of this kind, and the others as they are: functions of 1 and 0 are
  // finite, which those of the others need not be.
  std::string Where(ColumnTransform::Kind kind, const char* function, const std::string& wide,
                    const std::vector<ColumnTransform>& transforms, const ModelValue& value) {
    std::vector<double> here, others;
    for (const ColumnTransform& transform : transforms) {
      here.push_back(transform.kind == kind ? 1 : 0);
      others.push_back(1 - here.back());
    }
    if (std::ranges::count(here, 1.0) == 0) return wide;
    if (std::ranges::count(others, 1.0) == 0) return Node(function, {wide});
    const std::string mask = Constant(format("{}_here", function), here, value);
    const std::string rest = Constant(format("{}_others", function), others, value);
    const std::string held = Node("Add", {Node("Mul", {wide, mask}), rest});
    const std::string computed = Node("Mul", {Node(function, {held}), mask});
    return Node("Add", {computed, Node("Mul", {wide, rest})});
  }

  std::string Integers(const char* what, const std::vector<int64_t>& values) {
    Tensor tensor{ElementType::kInt64, {std::ssize(values)}, {}};
    tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(int64_t));
    return Add(what, std::move(tensor));
  }
  // The numbers of an example, in the shape that it has, `each` for each element.
  std::string Constant(const std::string& what, const std::vector<double>& values,
                       const ModelValue& value, int64_t each = 0) {
    std::vector<int64_t> dims;
    if (values.size() > 1 && value.has_shape && !value.dims.empty())
      dims.assign(value.dims.begin() + 1, value.dims.end());
    if (each > 0 && values.size() > 1) dims.push_back(each);
    Tensor tensor{ElementType::kDouble, dims, {}};
    Require(std::ranges::count(dims, ModelValue::kDynamic) == 0 &&
                tensor.Size() == static_cast<int64_t>(values.size()),
            "the shape of an example", name_);
    tensor.bytes.assign(reinterpret_cast<const char*>(values.data()),
                        values.size() * sizeof(double));
    return Add(what, std::move(tensor));
  }
  std::string Add(const std::string& what, Tensor tensor) {
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
                        const std::map<std::string, Standardization>& outputs, bool fills_missing,
                        Model* model) {
  Conversion conversion(model);
  for (const auto& [name, units] : inputs) conversion.BehindInput(name, units, fills_missing);
  for (const auto& [name, units] : outputs) conversion.BeforeOutput(name, units);
}

}  // namespace mxtrain::onnx
