// SPDX-License-Identifier: Apache-2.0
// Kinds with parameters: from values to a Named, whose kind is chosen by name and whose parameters
// a factory describes, and back.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "app/config/other_tools.h"
#include "app/config/schema.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

std::optional<std::string> TextOfElement(const Value& value, const std::string& type) {
  if (type == "integer")
    return value.AsInteger() ? std::optional(std::to_string(*value.AsInteger())) : std::nullopt;
  if (type == "number") {
    const std::optional<double> number = value.AsNumber();
    if (!number) return std::nullopt;
    return std::isinf(*number) ? params::Print(*number) : value.text;  // .inf is inf there
  }
  return value.is_scalar() ? std::optional(value.text) : std::nullopt;
}

// "(a, b)" of a list; a scalar stays one.
std::optional<std::string> TextOfList(const Value& value, const std::string& type) {
  const std::string element = type == "tuple"             ? "integer"
                              : type == "list of numbers" ? "number"
                                                          : "string";
  if (value.is_scalar()) return TextOfElement(value, element);
  if (!value.is_list()) return std::nullopt;
  std::vector<std::string> parts;
  for (const Value& item : value.list) {
    std::optional<std::string> part = TextOfElement(item, element);
    if (!part) return std::nullopt;
    parts.push_back(std::move(*part));
  }
  return parts.size() == 1 ? format("({},)", parts[0]) : format("({})", join(parts, ", "));
}

// A Named in parts: its name and the map of its parameters.
struct NamedParts {
  const std::string* name = nullptr;
  Place place;
  // The map, with `name` still in it; or the value of the first parameter.
  const Value* params = nullptr;
};

std::optional<NamedParts> SplitNamed(const Value& value, const ReadContext& context) {
  if (value.is_scalar()) return NamedParts{&value.text, value.place, nullptr};
  if (!value.is_map()) return std::nullopt;
  if (const Value* name = value.Get("name"); name && name->is_scalar())
    return NamedParts{&name->text, name->place, &value};
  const bool by_key =
      value.members.size() == 1 &&
      std::any_of(context.kinds.begin(), context.kinds.end(), [&](const NamedKind& kind) {
        return kind.name == value.members[0].key ||
               std::find(kind.also.begin(), kind.also.end(), value.members[0].key) !=
                   kind.also.end();
      });
  // Parameters without a name belong to the default: optimizer: {lr: 0.1}.
  const bool has_default =
      context.info && context.info->type != "list" && !context.info->default_text.empty();
  if (!by_key && has_default) return NamedParts{&context.info->default_text, value.place, &value};
  if (value.members.size() != 1) return std::nullopt;
  return NamedParts{&value.members[0].key, value.members[0].place, &value.members[0].value};
}

// For several kinds in one map where a list is expected: how to write them. "" otherwise.
std::string OneByOne(const Value& value, const ReadContext& context) {
  std::vector<std::string> items;
  for (const Member& m : value.members) {
    const bool known = std::any_of(context.kinds.begin(), context.kinds.end(),
                                   [&m](const NamedKind& kind) { return kind.name == m.key; });
    if (!known) return "";
    items.push_back(format("{{{}: ...}}", m.key));
  }
  return items.empty() || !context.info || context.info->type != "list"
             ? ""
             : format("write a list: [{}]", join(items, ", "));
}

// A hint for a word that is not one of the names but is known from other tools; "" for others.
std::string AdviceOn(const std::string& word, const std::vector<std::string>& names) {
  const auto has = [&names](const std::string& name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  if (word.starts_with("val_") && has(word.substr(4))) {
    return format("write '{}': every metric is measured on both training and validation data",
                  word.substr(4));
  }
  int k = 0;
  if (has("top_k") && std::sscanf(word.c_str(), "top_%d_accuracy", &k) == 1)
    return format("write {{top_k: {}}}", k);
  return AdviceForOtherTools(word);
}

const NamedKind* FindKind(const NamedParts& parts, const ReadContext& context) {
  std::vector<std::string> names;
  for (const NamedKind& kind : context.kinds) {
    if (kind.name == *parts.name) return &kind;
    names.push_back(kind.name);
  }
  std::string nearest = Nearest(*parts.name, names);
  for (const NamedKind& kind : context.kinds) {
    if (std::find(kind.also.begin(), kind.also.end(), *parts.name) != kind.also.end())
      nearest = kind.name;
  }
  const std::string advice = AdviceOn(*parts.name, names);
  context.diagnostics->Error(parts.place, format("{} has no '{}'", context.path, *parts.name),
                             !advice.empty()   ? advice
                             : nearest.empty() ? format("there are {}", join(names, ", "))
                                               : format("did you mean '{}'?", nearest));
  return nullptr;
}

bool AddParam(const Member& member, const NamedKind& kind, const ReadContext& context, Named* out) {
  std::vector<std::string> names;
  for (const FieldInfo& param : kind.params) {
    names.push_back(param.name);
    if (param.name != member.key) continue;
    if (member.value.is_null()) return true;
    const std::optional<std::string> text = TextOfField(member.value, param);
    if (!text) {
      context.diagnostics->Error(member.value.place,
                                 format("{}.{}: expected {}, got {}", kind.name, param.name,
                                        PhraseOfField(param), member.value.Describe()),
                                 HintForField(member.value, param));
      return false;
    }
    out->params.emplace_back(param.name, *text);
    if (param.type == "string") out->texts.push_back(param.name);
    return true;
  }
  std::string nearest = Nearest(member.key, names);
  for (const auto& [other, name] : kind.params_also) {
    if (other == member.key) nearest = name;
  }
  std::string help = AdviceForOtherTools(member.key);
  if (help.empty())
    help = names.empty() ? "it takes none" : format("it takes {}", join(names, ", "));
  for (const FieldInfo& param : kind.params) {
    if (param.name == nearest)
      help = format("did you mean '{}'? {}", nearest, DescribeField(param));
  }
  context.diagnostics->Error(member.place,
                             format("{} has no parameter '{}'", kind.name, member.key), help);
  return false;
}

// The factory's error for the parameters; "" if it accepts them.
std::string Objection(const NamedKind& kind, const Kwargs& params) {
  try {
    if (kind.check) kind.check(params);
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// A number, a truth or a list of them.
Value ValueOfText(const std::string& text) {
  if (!text.starts_with('('))
    return Value::Scalar(text == "True" ? "true" : text == "False" ? "false" : text);
  std::vector<std::string> parts;
  params::Parse(text, &parts);
  Value list = Value::List({});
  for (const std::string& part : parts) list.list.push_back(Value::Scalar(part));
  return list;
}

bool IsText(const FieldInfo& field) {
  return field.type == "path" || field.type == "string" || !field.choices.empty();
}

// Reports that error at the first parameter of `named` whose removal changes it.
bool CheckParams(const NamedKind& kind, const Named& named, const Value* params,
                 const ReadContext& context) {
  const std::string objection = Objection(kind, named.params);
  if (objection.empty()) return true;
  Place place = named.place;
  for (size_t i = 0; i < named.params.size(); ++i) {
    Kwargs others = named.params;
    others.erase(others.begin() + static_cast<ptrdiff_t>(i));
    if (Objection(kind, others) == objection) continue;
    const Value* blamed = params && params->is_map() ? params->Get(named.params[i].first) : params;
    if (blamed && blamed->place) place = blamed->place;
    break;
  }
  context.diagnostics->Error(place, objection);
  return false;
}

}  // namespace

std::optional<std::string> TextOfField(const Value& value, const FieldInfo& field) {
  const std::string& type = field.type;
  // A tuple may have words beside its numbers.
  if (type == "tuple" && (value.is_list() || value.AsInteger())) return TextOfList(value, type);
  if (!field.choices.empty() || type.find(" | ") != std::string::npos) {
    const bool is_word =
        std::find(field.choices.begin(), field.choices.end(), value.text) != field.choices.end();
    if (type == "tuple")
      return value.is_scalar() && is_word ? std::optional(value.text) : std::nullopt;
    const bool known = value.is_scalar() &&
                       (" " + type + " ").find(" " + value.text + " ") != std::string::npos &&
                       value.text != "|";
    return known ? std::optional(value.text) : std::nullopt;
  }
  if (type == "boolean")
    return value.AsBool() ? std::optional<std::string>(*value.AsBool() ? "True" : "False")
                          : std::nullopt;
  if (type == "tuple" || type.starts_with("list")) return TextOfList(value, type);
  return TextOfElement(value, type);
}

void SetParam(const std::string& name, std::string text, Kwargs* params) {
  for (auto& [key, old] : *params) {
    if (key != name) continue;
    old = std::move(text);
    return;
  }
  params->emplace_back(name, std::move(text));
}

bool ReadParam(const Value& value, const ReadContext& context, const FieldInfo& field,
               const CheckParamText& check, Kwargs* out) {
  std::string text;
  if (field.type == "path") {
    if (!ReadPath(value, context, &text)) return false;
  } else if (IsText(field)) {
    if (!Read(value, context, &text)) return false;
  } else {
    std::optional<std::string> read = TextOfField(value, field);
    if (!read) return Expected(PhraseOfField(field).c_str(), value, context);
    text = std::move(*read);
  }
  try {
    check(field.name, text, context.path.substr(0, context.path.rfind('.')));
  } catch (const Error& error) {
    context.diagnostics->Error(value.place, error.what());
    return false;
  }
  SetParam(field.name, std::move(text), out);
  return true;
}

Value WriteParam(const FieldInfo& field, const std::string& text) {
  return IsText(field) ? Write(text) : ValueOfText(text);
}

std::string PhraseOfField(const FieldInfo& field) {
  if (field.type == "integer") return "an integer";
  if (field.type == "number") return "a number";
  if (field.type == "boolean") return "true or false";
  if (field.type == "tuple") return "an integer or a list of integers";
  if (field.type == "list of numbers") return "a list of numbers";
  if (field.type == "string") return "a text";
  return field.choices.empty() ? field.type : format("{}", join(field.choices, ", "));
}

std::string HintForField(const Value& value, const FieldInfo& field) {
  const std::string nearest =
      value.is_scalar() && !field.choices.empty() ? Nearest(value.text, field.choices) : "";
  return nearest.empty() ? HintFor(value, field.help) : format("did you mean '{}'?", nearest);
}

std::string DescribeField(const FieldInfo& field) {
  std::string text = field.required ? "required, " : "";
  text += field.type + (field.range.empty() ? "" : " " + field.range);
  if (!field.required && !field.default_text.empty()) text += ", default " + field.default_text;
  return format("({}{})", text, field.help.empty() ? "" : ": " + field.help);
}

bool Read(const Value& value, const ReadContext& context, Named* out) {
  const std::optional<NamedParts> parts = SplitNamed(value, context);
  if (!parts)
    return Expected("a name, or {name: ..., parameters}", value, context, OneByOne(value, context));
  const NamedKind* kind = FindKind(*parts, context);
  if (!kind) return false;
  out->name = kind->name;
  out->place = parts->place;
  bool good = true;
  if (parts->params && parts->params->is_map()) {
    for (const Member& m : parts->params->members) {
      if (m.key == "name" && parts->params == &value) continue;
      if (m.value.is_null()) continue;  // removes a parameter of an included file's kind
      good = AddParam(m, *kind, context, out) && good;
    }
  } else if (parts->params && !parts->params->is_null()) {
    const Member first{kind->params.empty() ? *parts->name : kind->params[0].name,
                       parts->params->place, *parts->params};
    good = AddParam(first, *kind, context, out);
  }
  for (const FieldInfo& param : kind->params) {
    const bool given = std::any_of(out->params.begin(), out->params.end(),
                                   [&](const auto& p) { return p.first == param.name; });
    if (!good || given || !param.required) continue;
    context.diagnostics->Error(parts->place,
                               format("{} needs the parameter '{}'", kind->name, param.name),
                               DescribeField(param));
    good = false;
  }
  if (!good || !CheckParams(*kind, *out, parts->params, context)) return false;
  if (kind->resolve) out->params = kind->resolve(std::move(out->params));
  return true;
}

bool Read(const Value& value, const ReadContext& context, PatternKinds* out) {
  if (!value.is_map())
    return Expected("a map from patterns on names to kinds, {fc*: xavier}", value, context);
  out->clear();
  bool good = true;
  for (const Member& m : value.members) {
    if (m.value.is_null()) continue;  // removes a pattern of an included file
    Named named;
    good = Read(m.value, context, &named) && good;
    out->emplace_back(m.key, std::move(named));
  }
  return good;
}

Value Write(const Named& value) {
  if (value.params.empty()) return Value::Scalar(value.name);
  Value map = Value::Map({{"name", {}, Value::Scalar(value.name)}});
  for (const auto& [key, text] : value.params) {
    if (std::find(value.texts.begin(), value.texts.end(), key) != value.texts.end()) {
      map.members.push_back({key, {}, Write(text)});
      continue;
    }
    map.members.push_back({key, {}, ValueOfText(text)});
  }
  return map;
}
Value Write(const PatternKinds& value) {
  Value map = Value::Map({});
  for (const auto& [pattern, named] : value) map.members.push_back({pattern, {}, Write(named)});
  return map;
}
}  // namespace mxtrain::config
