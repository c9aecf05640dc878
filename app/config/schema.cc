// SPDX-License-Identifier: Apache-2.0
#include "app/config/schema.h"

#include <algorithm>

#include "mxtrain/base/json.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/operator/registry.h"

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

// A part of the schema that stands in several places, or in itself.
constexpr const char *kNoValue = "expression_or_null", *kLayers = "layers";

Json Ref(const std::string& name) {
  return {{"$ref", "#/$defs/" + name}};
}

// A value of this form, or what may replace any value: an expression, and null for none.
Json ValueOf(const Json& form) {
  return AnyOf(form, Ref(kNoValue));
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
  if (field.default_text == "None") {
    FieldInfo given = field;
    given.default_text.clear();
    return AnyOf(FormOfParam(given), {{"const", "None"}});
  }
  if (IsPlain(type)) return OfType(type);
  if (type == "tuple") {
    const Json numbers = OfTypes({"integer", "array"});
    return field.choices.empty() ? numbers : AnyOf(numbers, {{"enum", field.choices}});
  }
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
    const Json word = {{"enum", std::move(choices)}};
    return info.type == "list" ? AnyOf({{"type", "array"}, {"items", word}}, word) : word;
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
  if (info.type == "none, auto or map of columns") return OfTypes({"string", "object"});
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

// Parameters, and the keys of every layer. Any other key is an argument, whose value is a name.
Json FormOfLayer(const OperatorProperty& op) {
  Json properties = {{"name", ValueOf(Text())}};
  for (const char* key : {"inputs", "attrs", "when"}) properties[key] = Json::object();
  for (FieldInfo param : op.DescribeParams()) {
    // As in net_params.cc: whether a number may be None is known to the operator alone.
    if (param.type == "integer" || param.type == "number") param.default_text = "None";
    Json value = param.ignored ? Json::object() : ValueOf(FormOfParam(param));
    value["description"] = param.help;
    properties[param.name] = std::move(value);
  }
  Json layer = MapOf(properties);
  layer["type"] = Json::array({"object", "null"});
  layer["additionalProperties"] = OfType("string");
  layer["description"] = op.Description();
  return layer;
}

Json MapOfAny(const std::vector<std::string>& keys) {
  Json properties = Json::object();
  for (const std::string& key : keys) properties[key] = Json::object();
  return MapOf(properties);
}

// Adds the list of layers, and an entry for each operator. Other names are those of blocks.
void DefineLayers(const OperatorRegistry& operators, Json* definitions) {
  Json named = Json::object();
  for (const std::string& name : operators.Names()) {
    if (name.starts_with('_')) continue;  // internal
    (*definitions)[name] = FormOfLayer(*operators.CreateUninitialized(name));
    named[name] = Ref(name);
    for (const std::string& alias : operators.Aliases(name)) named[alias] = Ref(name);
  }
  named["Variable"] = MapOfAny({"name", "shape", "init", "lr_mult", "wd_mult", "when"});
  named["repeat"] = MapOfAny({"count", "index", "layers", "when"});
  named["repeat"]["properties"]["layers"] = Ref(kLayers);
  const Json one = {{"type", "object"},
                    {"minProperties", 1},
                    {"maxProperties", 1},
                    {"properties", named},
                    {"additionalProperties", OfTypes({"object", "null"})}};
  (*definitions)[kLayers] = {{"type", Json::array({"array", "null"})},
                             {"items", AnyOf(OfType("string"), one)}};
}

// The sub-nets of `blocks`.
Json FormOfBlocks() {
  Json block = MapOfAny({"params", "inputs", "layers", "outputs"});
  block["properties"]["layers"] = Ref(kLayers);
  return {{"type", Json::array({"object", "null"})},
          {"additionalProperties", AnyOf(block, OfType("null"))}};
}

}  // namespace

std::string Key::Describe(std::string_view selected) const {
  std::string help = info.help;
  for (const auto& [value, own] : info.help_for) {
    if (value == selected) help = own;
  }
  const bool optional = std::ranges::count(info.optional_for, selected) > 0;
  std::string text = info.required && !optional ? "required, " : "";
  text += info.choices.empty() ? info.type : format("{}", join(info.choices, " | "));
  if (!info.range.empty()) text += " " + info.range;
  if (!info.word.empty()) text += " or " + info.word;
  if (!info.default_text.empty()) text += ", default " + info.default_text;
  return format("({}: {})", text, help);
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

std::string JsonSchema(const OperatorRegistry& operators) {
  Json root = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
               {"title", "mxtrain configuration"}};
  root.update(SchemaOfSection(Schema(), ""));
  root["properties"]["net"]["properties"]["layers"].update(Ref(kLayers));
  root["properties"]["blocks"].update(FormOfBlocks());
  Json& definitions = root["$defs"];
  const Json expression = {{"type", "string"}, {"pattern", "\\$\\{"}};
  definitions[kNoValue] = AnyOf(expression, OfType("null"));
  DefineLayers(operators, &definitions);
  return root.dump(2);
}

}  // namespace mxtrain::config
