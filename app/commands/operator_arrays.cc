// SPDX-License-Identifier: Apache-2.0
#include "app/commands/operator_arrays.h"

#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/text.h"

namespace mxtrain::commands {
namespace {

// May be the number of inputs or outputs.
bool MayCount(const FieldInfo& field) {
  return field.type == "integer" && field.name.starts_with("num_");
}

// Some value of a required parameter.
std::string ValueOf(const FieldInfo& field) {
  if (!field.choices.empty()) return field.choices[0];
  if (field.type == "tuple" || field.type.starts_with("list")) return "(1, 1)";
  if (field.type == "integer") return MayCount(field) ? "2" : "1";
  if (field.type == "number") return "1";
  if (field.type == "boolean") return "False";
  return field.type == "element type" ? "float32" : "";
}

// Values other than `base` that may change the operator's arrays.
std::vector<std::string> OtherValues(const FieldInfo& field, const std::string& base) {
  if (field.type == "boolean") return {field.default_text == "True" ? "False" : "True"};
  if (MayCount(field)) return {base == "2" ? "3" : "2"};
  std::vector<std::string> values = field.choices;
  std::erase(values, base);
  return values;
}

OperatorArrays ArraysOf(const OperatorProperty& property) {
  OperatorArrays arrays = {property.ListArguments(), property.ListOutputs(),
                           property.ListAuxiliaryStates()};
  arrays.outputs.resize(static_cast<size_t>(property.NumVisibleOutputs()));
  return arrays;
}

// An operator, with some value for each required parameter.
class ShapeTrial {
 public:
  ShapeTrial(const OperatorRegistry& registry, const std::string& name,
             const std::vector<FieldInfo>& fields)
      : registry_(registry), name_(name) {
    for (const FieldInfo& field : fields) {
      if (field.required) base_[field.name] = ValueOf(field);
      if (!field.required && field.type == "tuple") tuples_[field.name] = "(1, 1)";
    }
    // Of a few possible numbers of arrays, the least is the base.
    for (const FieldInfo& field : fields) {
      if (field.required && MayCount(field) && !With(field.name, "3") && With(field.name, "1"))
        base_[field.name] = "1";
    }
  }

  // With another value of one parameter, or of none. Null if the operator refuses it, also with a
  // value for each tuple.
  std::shared_ptr<const OperatorProperty> With(const std::string& key = "",
                                               const std::string& value = "") const {
    std::map<std::string, std::string> params = base_;
    if (!key.empty()) params[key] = value;
    if (auto property = Make(params)) return property;
    params.insert(tuples_.begin(), tuples_.end());
    return Make(params);
  }
  std::string BaseOf(const FieldInfo& field) const {
    return field.required ? base_.at(field.name) : field.default_text;
  }

 private:
  std::shared_ptr<const OperatorProperty> Make(
      const std::map<std::string, std::string>& params) const {
    try {
      return registry_.Create(name_, Kwargs(params.begin(), params.end()));
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::kBug) throw;
      return nullptr;
    }
  }

  const OperatorRegistry& registry_;
  const std::string& name_;
  std::map<std::string, std::string> base_, tuples_;
};

std::string TextOfList(const ArraysReference& reference, const char* title,
                       std::vector<std::string> OperatorArrays::*list) {
  const std::vector<std::string>& base = reference.base.*list;
  std::string text, others;
  for (const ArraysVariant& variant : reference.variants) {
    const std::vector<std::string>& names = variant.arrays.*list;
    if (names == base) continue;
    if (variant.is_count) {
      text = format(", ... ({} says how many)", variant.parameter);
    } else {
      others += format("  with {} = {}: {}\n", variant.parameter, variant.value,
                       names.empty() ? "none" : format("{}", join(names, ", ")));
    }
  }
  if (base.empty() && others.empty()) return "";
  return format("{}: {}{}\n{}", title, base.empty() ? "none" : format("{}", join(base, ", ")), text,
                others);
}

}  // namespace

ArraysReference DescribeArrays(const OperatorRegistry& registry, const std::string& name) {
  const auto blank = registry.CreateUninitialized(name);
  const std::vector<FieldInfo> fields = blank->DescribeParams();
  const ShapeTrial trial(registry, name, fields);
  const auto property = trial.With();
  ArraysReference reference{ArraysOf(property ? *property : *blank), {}};
  for (const FieldInfo& field : fields) {
    if (field.ignored) continue;
    for (const std::string& value : OtherValues(field, trial.BaseOf(field))) {
      const auto other = trial.With(field.name, value);
      if (!other) continue;
      ArraysVariant variant{field.name, value, false, ArraysOf(*other)};
      if (variant.arrays == reference.base) continue;
      variant.is_count = MayCount(field) && trial.With(field.name, "3");
      reference.variants.push_back(std::move(variant));
    }
  }
  return reference;
}

std::string TextOfArrays(const ArraysReference& arrays) {
  return TextOfList(arrays, "Inputs", &OperatorArrays::arguments) +
         TextOfList(arrays, "Outputs", &OperatorArrays::outputs) +
         TextOfList(arrays, "Auxiliary states", &OperatorArrays::auxiliary_states);
}

}  // namespace mxtrain::commands
