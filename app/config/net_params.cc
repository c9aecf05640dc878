// SPDX-License-Identifier: Apache-2.0
// From YAML values to an operator with its parameters.
#include <algorithm>

#include "app/config/net_layers.h"
#include "app/config/other_tools.h"
#include "app/config/schema.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

// Parameters with one element per spatial axis: a scalar is repeated.
bool IsSpatial(const std::string& name) {
  static constexpr std::string_view kSpatial[] = {"kernel", "stride",       "pad",        "dilate",
                                                  "adj",    "target_shape", "output_size"};
  return std::find(std::begin(kSpatial), std::end(kSpatial), name) != std::end(kSpatial);
}

std::string Repeat(const std::string& element, int count) {
  if (count == 1) return "(" + element + ",)";
  std::string text = "(" + element;
  for (int i = 1; i < count; ++i) text += ", " + element;
  return text + ")";
}

bool IsNone(const Value& value) {
  return value.is_scalar() && value.text == "None";
}

// MXNet's None is written None or, within a list, null. Numbers may be written as text that the
// operator reads ("inf"); whether one may be None is known to the operator.
std::optional<std::string> Text(const Value& value, const FieldInfo& field, int rank) {
  const bool number = field.type == "integer" || field.type == "number";
  if (IsNone(value) && (number || field.default_text == "None")) return value.text;
  if (field.type == "list" && value.is_list()) {
    Value named = value;
    for (Value& item : named.list) {
      if (item.is_null()) item = Value::Scalar("None", item.place);
    }
    return TextOfField(named, field);
  }
  if (field.type == "tuple" && value.is_scalar() && IsSpatial(field.name)) {
    for (const std::string& word : field.choices) {
      if (value.text == word) return word;
    }
    return value.AsInteger() ? std::optional(Repeat(std::to_string(*value.AsInteger()), rank))
                             : std::nullopt;
  }
  return TextOfField(value, field);
}

// What to write for `pad` as a word of Keras or TensorFlow; "" for anything else.
std::string PadOfOtherTools(const Layer& layer, const Value& pad, const FieldInfo& field) {
  const std::string& word = pad.text;
  if (word == "valid" || word == "VALID") return "write pad: 0";
  if (word != "same" && word != "SAME") return "";
  if (!field.choices.empty()) return "write pad: same";
  const auto kernel = std::find_if(layer.params.begin(), layer.params.end(),
                                   [](const Member& m) { return m.key == "kernel"; });
  const std::optional<int64_t> side =
      kernel == layer.params.end() ? std::nullopt : kernel->value.AsInteger();
  return side ? format("write pad: {}, which keeps the size at stride 1", *side / 2)
              : "pad: k // 2 for a kernel of k keeps the size at stride 1";
}

// What to write instead of a value that the parameter does not accept.
std::string HelpForValue(const Layer& layer, const Member& m, const FieldInfo& field) {
  if (m.key == "pad" && m.value.is_scalar()) {
    if (const std::string pad = PadOfOtherTools(layer, m.value, field); !pad.empty()) return pad;
  }
  const std::string other = m.key == "act_type" ? ActivationOfOtherTools(m.value.text) : "";
  return other.empty() ? HintForField(m.value, field) : format("write - {}", other);
}

}  // namespace

std::optional<Kwargs> ReadParams(const Layer& layer, const std::vector<FieldInfo>& fields,
                                 const std::string& num_args_key, int rank,
                                 Diagnostics* diagnostics) {
  Kwargs kwargs;
  bool good = true;
  for (const Member& m : layer.params) {
    if (m.key == "kernel" && m.value.is_list() && !m.value.list.empty())
      rank = static_cast<int>(m.value.list.size());
  }
  const auto find = [&](const std::string& name) {
    return std::find_if(fields.begin(), fields.end(),
                        [&](const FieldInfo& f) { return f.name == name; });
  };
  for (const Member& m : layer.params) {
    const auto field = find(m.key);
    if (m.value.is_null() || field->ignored) continue;
    // An operator without windows takes a single size itself, for images alone.
    const bool single = m.key == "output_size" && find("kernel") == fields.end();
    if (const std::optional<std::string> text = Text(m.value, *field, single ? 1 : rank)) {
      kwargs.emplace_back(m.key, *text);
      continue;
    }
    const std::string help = HelpForValue(layer, m, *field);
    diagnostics->Error(m.value.place,
                       format("{}.{}: expected {}, got {}", layer.written, m.key,
                              PhraseOfField(*field), m.value.Describe()),
                       help, layer.notes);
    good = false;
  }
  for (const FieldInfo& field : fields) {
    const bool given = std::any_of(layer.params.begin(), layer.params.end(), [&](const Member& m) {
      return m.key == field.name && !m.value.is_null();
    });
    if (!field.required || given || field.name == num_args_key) continue;
    // A typo is one error: a misspelled key that is nearest to this one has been reported.
    const bool misspelt =
        std::any_of(layer.named.begin(), layer.named.end(), [&](const auto& named) {
          return Nearest(named.first, std::vector<std::string>{field.name}) == field.name ||
                 ParamOfOtherTools(named.first, fields) == field.name;
        });
    if (!misspelt)
      diagnostics->Error(layer.place,
                         format("{} needs the parameter '{}'", layer.written, field.name),
                         format("{} {}", field.name, DescribeField(field)), layer.notes);
    good = false;
  }
  return good ? std::optional(kwargs) : std::nullopt;
}

std::shared_ptr<const OperatorProperty> MakeProperty(const Layer& layer, const Kwargs& kwargs,
                                                     const OperatorRegistry& registry,
                                                     Diagnostics* diagnostics) {
  try {
    return registry.Create(layer.op, kwargs);
  } catch (const Error& error) {
    // "OP: KEY = 'TEXT': ..." is about one parameter.
    const std::string what = error.what();
    for (const Member& m : layer.params) {
      const size_t at = what.find(": " + m.key + " = '");
      if (at == std::string::npos) continue;
      const size_t rest = what.find("': ", at);
      diagnostics->Error(m.value.place,
                         format("{}.{}: {}", layer.written, m.key,
                                rest == std::string::npos ? what : what.substr(rest + 3)),
                         "", layer.notes);
      return nullptr;
    }
    diagnostics->Error(layer.place, what, "", layer.notes);
    return nullptr;
  }
}

void ReportUnknownParam(const Layer& layer, const std::string& key, const Place& place,
                        const std::vector<FieldInfo>& fields,
                        const std::vector<std::string>& arguments, Diagnostics* diagnostics) {
  std::vector<std::string> names;
  for (const FieldInfo& field : fields) names.push_back(field.name);
  names.insert(names.end(), arguments.begin(), arguments.end());
  names.insert(names.end(), {"name", "inputs", "attrs", "when"});
  const std::string other = ParamOfOtherTools(key, fields),
                    advice = other.empty() ? AdviceForOtherTools(key) : "";
  if (!advice.empty())
    return diagnostics->Error(place, format("{} has no parameter '{}'", layer.written, key), advice,
                              layer.notes);
  const std::string nearest = !other.empty() ? other : Nearest(key, names);
  std::string help = fields.empty() ? "it has no parameters" : "";
  for (const FieldInfo& field : fields) {
    if (nearest.empty() && !field.ignored)
      help += (help.empty() ? "parameters: " : ", ") + field.name;
    if (field.name == nearest)
      help = format("did you mean '{}'? {}", nearest, DescribeField(field));
  }
  if (!nearest.empty() && !help.starts_with("did")) help = format("did you mean '{}'?", nearest);
  diagnostics->Error(place, format("{} has no parameter '{}'", layer.written, key), help,
                     layer.notes);
}

}  // namespace mxtrain::config
