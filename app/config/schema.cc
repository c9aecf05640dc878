// SPDX-License-Identifier: Apache-2.0
#include "app/config/schema.h"

#include <algorithm>

#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

void Collect(const std::vector<Key>& keys, const std::string& prefix, std::vector<KeyInfo>* infos) {
  for (const Key& key : keys) {
    KeyInfo& info = infos->emplace_back(key.info);
    info.path = prefix + key.info.name;
    Collect(key.keys, prefix + key.info.name + ".", infos);
  }
}

Json OfType(const std::string& type) {
  return {{"type", type}};
}
Json OfTypes(const std::vector<std::string>& types) {
  return {{"type", types}};
}
Json AnyOf(const Json& one, const Json& other) {
  return {{"anyOf", Json::array({one, other})}};
}

// A value of this form, or what may replace any value: an expression, and null for none.
Json ValueOf(Json form) {
  const Json expression = {{"type", "string"}, {"pattern", "\\$\\{"}};
  return {{"anyOf", Json::array({std::move(form), expression, OfType("null")})}};
}

// Every scalar is a text too: `name: 5`.
Json Text() {
  return OfTypes({"string", "number", "boolean"});
}

bool IsPlain(const std::string& type) {
  return type == "integer" || type == "number" || type == "boolean";
}

Json FormOfParam(const FieldInfo& field) {
  const std::string& type = field.type;
  if (IsPlain(type)) return OfType(type);
  if (type == "tuple") return OfTypes({"integer", "array"});
  if (type.starts_with("list")) return OfTypes({"number", "array", "string"});
  if (type.find(" | ") == std::string::npos && field.choices.empty()) return Text();
  Json choices = Json::array();
  for (size_t at = 0; at < type.size();) {
    const size_t end = std::min(type.find(" | ", at), type.size());
    choices.push_back(type.substr(at, end - at));
    at = end + 3;
  }
  return {{"enum", choices}};
}

Json MapOf(const Json& properties) {
  return {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
}

// The ways to write a Named: its bare name, {name: X, ...} and {X: ...}; with `nameless` also its
// parameters alone, for the default or the kind of an included file.
Json SchemaOfKinds(const std::vector<NamedKind>& kinds, bool nameless) {
  Json any = Json::array(), of_all = Json::object();
  for (const NamedKind& kind : kinds) {
    Json properties = Json::object();
    for (const FieldInfo& param : kind.params) {
      Json value = ValueOf(FormOfParam(param));
      Json& shared = of_all[param.name];
      shared = shared.is_null() || shared == value ? value : Json::object();
      value["description"] = param.help;
      properties[param.name] = std::move(value);
    }
    any.push_back({{"const", kind.name}, {"description", kind.help}});
    Json named = properties;
    named["name"] = {{"const", kind.name}};
    any.push_back(MapOf(named));
    any.back()["required"] = Json::array({"name"});
    const Json first = kind.params.empty() ? OfType("null") : ValueOf(FormOfParam(kind.params[0]));
    Json by_name = Json::object();
    by_name[kind.name] = AnyOf(first, MapOf(properties));
    any.push_back(MapOf(by_name));
    any.back()["required"] = Json::array({kind.name});
  }
  if (nameless) any.push_back(MapOf(of_all));
  return {{"anyOf", any}};
}

// Empty: any value.
Json FormOfLeaf(const Key& key) {
  const KeyInfo& info = key.info;
  if (!key.kinds.empty()) {
    const bool list = info.type == "list", map = info.type == "map of kinds";
    Json kinds = SchemaOfKinds(key.kinds, !list && !map);
    if (list) return AnyOf({{"type", "array"}, {"items", kinds}}, kinds);
    if (map) return {{"type", "object"}, {"additionalProperties", ValueOf(std::move(kinds))}};
    return kinds;
  }
  if (!info.choices.empty()) {
    Json choices = info.choices;
    if (!info.required && info.default_text.empty()) choices.push_back("");
    return {{"enum", std::move(choices)}};
  }
  if (IsPlain(info.type)) {
    const Json plain = OfType(info.type), word = {{"const", info.word}};
    return info.word.empty() ? plain : AnyOf(plain, word);
  }
  if (info.type == "string" || info.type == "path") return Text();
  if (info.type == "list of paths") return OfTypes({"string", "array"});
  if (info.type == "interval" || info.type == "duration") return OfTypes({"string", "integer"});
  if (info.type == "bytes") return OfTypes({"string", "number"});
  if (info.type == "auto, list or map of numbers") return OfTypes({"string", "array", "object"});
  if (info.type == "map of columns" || info.type == "map of numbers") return OfType("object");
  return Json::object();
}

Json SchemaOfLeaf(const Key& key) {
  const KeyInfo& info = key.info;
  Json leaf = FormOfLeaf(key);
  if (!leaf.empty()) leaf = ValueOf(std::move(leaf));
  leaf["description"] = info.help + (info.range.empty() ? "" : " (" + info.range + ")");
  if (!info.default_text.empty() && key.kinds.empty()) {
    const Value text = Value::Scalar(info.default_text);
    leaf["default"] = info.type == "integer" && text.AsInteger() ? Json(*text.AsInteger())
                      : text.AsNumber() && info.type == "number" ? Json(*text.AsNumber())
                      : text.AsBool()                            ? Json(*text.AsBool())
                                                                 : Json(info.default_text);
  }
  return leaf;
}

// No key is required: a missing one may come from an included file, a later file or the command
// line.
Json SchemaOfSection(const std::vector<Key>& keys, const std::string& selector) {
  Json properties = Json::object();
  for (const Key& key : keys) {
    Json entry =
        key.is_section() ? SchemaOfSection(key.keys, key.info.selector) : SchemaOfLeaf(key);
    if (key.is_section()) entry["description"] = key.info.help;
    Json& property = properties[key.info.name];
    property = property.is_null() ? entry : AnyOf(property, entry);
  }
  Json section = MapOf(properties);
  section["type"] = Json::array({"object", "null"});
  return selector.empty() ? section : AnyOf(section, properties[selector]);
}

}  // namespace

std::string Key::Describe() const {
  std::string text = info.required ? "required, " : "";
  text += info.choices.empty() ? info.type : format("{}", join(info.choices, " | "));
  if (!info.range.empty()) text += " " + info.range;
  if (!info.word.empty()) text += " or " + info.word;
  if (!info.default_text.empty()) text += ", default " + info.default_text;
  return format("({}: {})", text, info.help);
}

std::string ShortFormOf(std::string_view path) {
  const std::vector<KeyInfo> keys = DescribeKeys();
  const auto found = std::find_if(keys.begin(), keys.end(), [&](const KeyInfo& key) {
    return key.path == path && key.type == "map";
  });
  return found == keys.end() ? "" : found->selector;
}

std::vector<KeyInfo> DescribeKeys() {
  std::vector<KeyInfo> infos;
  Collect(Schema(), "", &infos);
  return infos;
}

std::string JsonSchema() {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "mxtrain configuration"}};
  root.update(SchemaOfSection(Schema(), ""));
  return root.dump(2);
}

}  // namespace mxtrain::config
