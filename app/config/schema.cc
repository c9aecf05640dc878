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

Json TypeOfParam(const FieldInfo& field) {
  const std::string& type = field.type;
  if (type == "integer" || type == "number" || type == "boolean" || type == "string")
    return {{"type", type}};
  if (type == "tuple") return {{"type", Json::array({"integer", "array"})}};
  if (type.starts_with("list")) return {{"type", Json::array({"number", "array", "string"})}};
  if (type.find(" | ") == std::string::npos && field.choices.empty()) return {{"type", "string"}};
  Json choices = Json::array();
  for (size_t at = 0; at < type.size();) {
    const size_t end = std::min(type.find(" | ", at), type.size());
    choices.push_back(type.substr(at, end - at));
    at = end + 3;
  }
  return {{"enum", choices}};
}

// The ways to write a Named: its bare name, {name: X, ...} and {X: ...}.
Json SchemaOfKinds(const std::vector<NamedKind>& kinds) {
  Json any = Json::array();
  for (const NamedKind& kind : kinds) {
    Json properties = Json::object();
    for (const FieldInfo& param : kind.params) {
      properties[param.name] = TypeOfParam(param);
      properties[param.name]["description"] = param.help;
    }
    any.push_back({{"const", kind.name}, {"description", kind.help}});
    Json named = properties;
    named["name"] = {{"const", kind.name}};
    any.push_back({{"type", "object"},
                   {"required", Json::array({"name"})},
                   {"properties", named},
                   {"additionalProperties", false}});
    Json by_key = {{"type", Json::array({"object", "number", "string", "array", "null"})},
                   {"properties", properties}};
    any.push_back({{"type", "object"},
                   {"required", Json::array({kind.name})},
                   {"properties", {{kind.name, by_key}}},
                   {"additionalProperties", false}});
  }
  return {{"anyOf", any}};
}

Json SchemaOfLeaf(const Key& key) {
  const KeyInfo& info = key.info;
  Json leaf = Json::object();
  if (!key.kinds.empty()) {
    leaf = SchemaOfKinds(key.kinds);
    if (info.type == "list") leaf = {{"type", "array"}, {"items", leaf}};
    if (info.type == "map of kinds") leaf = {{"type", "object"}, {"additionalProperties", leaf}};
  } else if (!info.choices.empty()) {
    leaf["enum"] = info.choices;
  } else if (info.type == "integer" || info.type == "number" || info.type == "boolean") {
    // An expression may replace any value.
    leaf["anyOf"] =
        Json::array({Json{{"type", info.type}}, Json{{"type", "string"}, {"pattern", "\\$\\{"}}});
    if (!info.word.empty()) leaf["anyOf"].push_back({{"const", info.word}});
  } else if (info.type == "string" || info.type == "path") {
    leaf["type"] = "string";
  } else if (info.type == "interval") {
    leaf["type"] = Json::array({"string", "integer"});
  } else if (info.type == "duration") {
    leaf["type"] = "string";
  } else if (info.type == "auto, list or map of numbers") {
    leaf["type"] = Json::array({"string", "array", "object"});
  } else if (info.type == "map of columns" || info.type == "map of numbers") {
    leaf["type"] = "object";
  }
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

Json SchemaOfSection(const std::vector<Key>& keys, const std::string& selector) {
  Json properties = Json::object(), required = Json::array();
  for (const Key& key : keys) {
    Json entry =
        key.is_section() ? SchemaOfSection(key.keys, key.info.selector) : SchemaOfLeaf(key);
    if (key.is_section()) entry["description"] = key.info.help;
    Json& property = properties[key.info.name];
    property = property.is_null()
                   ? std::move(entry)
                   : Json{{"anyOf", Json::array({std::move(property), std::move(entry)})}};
    if (key.info.required && key.info.only_for.empty()) required.push_back(key.info.name);
  }
  Json section = {{"type", "object"}, {"properties", properties}, {"additionalProperties", false}};
  if (!required.empty()) section["required"] = required;
  if (selector.empty()) return section;
  return {{"anyOf", Json::array({section, properties[selector]})}};
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
  Json schema = SchemaOfSection(Schema(), "");
  // Missing keys may come from another file or the command line.
  schema.erase("required");
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "mxtrain configuration"}};
  root.update(schema);
  return root.dump(2);
}

}  // namespace mxtrain::config
