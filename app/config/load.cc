// SPDX-License-Identifier: Apache-2.0
#include "app/config/load.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "app/config/evaluate.h"
#include "app/config/relations.h"
#include "app/config/schema.h"
#include "app/config/unknown_keys.h"
#include "app/config/zoo.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/source_factory.h"

namespace mxtrain::config {
namespace {

constexpr size_t kLongestPath = 200;  // "net.layers.0.Convolution.num_filter"

// A name, or a list of them.
void MarkNames(Value* value) {
  if (value->is_scalar()) value->quoted = true;
  for (Value& item : value->list) MarkNames(&item);
}

void MarkNamesOfLayers(Value* layers) {
  for (Value& item : layers->list) {
    MarkNames(&item);
    for (Member& layer : item.members) {
      for (Member& m : layer.value.members) {
        if (m.key == "name" || m.key == "inputs") MarkNames(&m.value);
        if (m.key == "layers") MarkNamesOfLayers(&m.value);  // of a repeat
        if (m.key != "attrs") continue;
        for (Member& attr : m.value.members) {
          if (attr.key.ends_with("ctx_group")) MarkNames(&attr.value);
        }
      }
    }
  }
}

// The names in a raw value of the table become texts, so that a layer 010 is not written as 10. All
// other scalars that look like numbers are numbers, also those of variables.
Value WithNamesMarked(Value value, const std::string& path) {
  if (path == "net.outputs") MarkNames(&value);
  if (path == "net.layers") MarkNamesOfLayers(&value);
  if (path != "blocks") return value;
  for (Member& block : value.members) {
    for (Member& m : block.value.members) {
      if (m.key == "inputs" || m.key == "outputs") MarkNames(&m.value);
      if (m.key == "layers") MarkNamesOfLayers(&m.value);
    }
  }
  return value;
}

void MarkTextsIn(const std::vector<Place>& texts, Value* value) {
  if (value->AsNumber() && std::find(texts.begin(), texts.end(), value->place) != texts.end())
    value->quoted = true;
  for (Value& item : value->list) MarkTextsIn(texts, &item);
  for (Member& member : value->members) MarkTextsIn(texts, &member.value);
}

// Whether a section is evaluated later, or part by part.
bool KeepsExpressions(std::string_view section) {
  return section == "net" || section == "blocks" || section == "vars";
}

class Loader {
 public:
  Loader(Diagnostics* diagnostics, LoadedConfig* loaded)
      : diagnostics_(*diagnostics), loaded_(*loaded) {}

  void Run(Value root) {
    if (const Value* vars = root.Get("vars")) vars_ = EvaluateVars(*vars, &diagnostics_);
    for (Member& member : root.members) {
      if (!KeepsExpressions(member.key)) ExpandAll(&member.value);
    }
    loaded_.resolved = ReadSection(Schema(), &loaded_.config, &root, "", {}, true);
    for (Member& member : loaded_.resolved.members) {
      if (!KeepsExpressions(member.key)) Escape(&member.value);
    }
  }

 private:
  void ExpandAll(Value* value) {
    for (Value& item : value->list) ExpandAll(&item);
    for (Member& member : value->members) ExpandAll(&member.value);
    if (HasExpression(*value) && !ExpandAt(value, names_, &diagnostics_))
      broken_.push_back(value->place);
  }
  bool IsBroken(const Value& value) const {
    return std::find(broken_.begin(), broken_.end(), value.place) != broken_.end();
  }

  // Reads the keys from `value` (null: absent) into `owner`; returns the value with every default
  // filled in.
  Value ReadSection(const std::vector<Key>& keys, void* owner, const Value* value,
                    const std::string& path, const std::string& selector, bool wanted) {
    Value as_map;
    if (value && (value->is_scalar() || value->is_list()) && !selector.empty()) {
      as_map = Value::Map({{selector, value->place, *value}}, value->place);
      value = &as_map;
    }
    if (value && !value->is_map() && !value->is_null()) {
      diagnostics_.Error(value->place,
                         format("{}: expected a map of keys, got {}", path, value->Describe()),
                         HelpForSection(keys, *value));
      value = nullptr;
      wanted = false;
    }
    Value resolved = Value::Map({});
    for (const Key& key : keys) {
      if (IsShadowed(keys, key, value)) continue;
      const Member* member = value && value->is_map() ? value->Find(key.info.name) : nullptr;
      Value written = ReadKey(key, owner, member, value, path, wanted);
      if (!written.is_null() && !(written.is_map() && written.members.empty()))
        resolved.members.push_back({key.info.name, {}, std::move(written)});
    }
    if (value) ReportUnknown(keys, *value, path);
    return resolved;
  }

  // A text in place of a data set is a folder or file whose kind is not said.
  std::string HelpForSection(const std::vector<Key>& keys, const Value& value) const {
    if (keys.empty() || keys.front().info.name != "source" || !value.is_scalar())
      return KeyList(keys);
    const std::filesystem::path base = value.place ? diagnostics_.sources().Folder(value.place.file)
                                                   : std::filesystem::current_path();
    const std::filesystem::path path = base / value.text;
    std::error_code none;
    const io::SourceKind* const kind =
        std::filesystem::exists(path, none) ? io::RecognizeSource(path.string(), "").kind : nullptr;
    return format("say what it holds: {{source: {}, path: {}}}; {}",
                  kind ? kind->name : "image_folder", value.text, KeyList(keys));
  }

  // Whether the selector excludes this key.
  static bool IsShadowed(const std::vector<Key>& keys, const Key& key, const Value* value) {
    if (key.info.only_for.empty()) return false;
    const std::string selected = Selected(keys, key.info.selector, value);
    return std::find(key.info.only_for.begin(), key.info.only_for.end(), selected) ==
           key.info.only_for.end();
  }
  static std::string Selected(const std::vector<Key>& keys, const std::string& selector,
                              const Value* value) {
    if (const Value* given = value ? value->Get(selector) : nullptr; given && given->is_scalar())
      return given->text;
    for (const Key& key : keys) {
      if (key.info.name == selector) return key.info.default_text;
    }
    return "";
  }

  static bool IsRequired(const Key& key, const Value* section) {
    const Value* const selected = section ? section->Get(key.info.selector) : nullptr;
    return key.info.required && (!selected || !selected->is_scalar() ||
                                 std::ranges::count(key.info.optional_for, selected->text) == 0);
  }

  Value ReadKey(const Key& key, void* owner, const Member* member, const Value* section,
                const std::string& prefix, bool wanted) {
    const std::string path = prefix.empty() ? key.info.name : prefix + "." + key.info.name;
    const Value* value = member && !member->value.is_null() ? &member->value : nullptr;
    if (IsRequired(key, section) && wanted && !value && !IsMisspelt(key, section))
      ReportMissing(key, member, section, path);
    if (key.is_section()) {
      if (key.set_place && member) key.set_place(owner, member->place);
      const size_t origins = loaded_.origins.size();
      Value written =
          ReadSection(key.keys, key.child(owner), value, path, key.info.selector, value != nullptr);
      const bool optional = std::none_of(key.keys.begin(), key.keys.end(),
                                         [](const Key& k) { return k.info.required; });
      if (value || optional) return written;
      loaded_.origins.resize(origins);  // the section does not exist
      return Value{};
    }
    if (!key.read) return Value{};
    if (!value) {
      if (!key.set_default) return Value{};
      key.set_default(owner);
      loaded_.origins.push_back({path, {}});
      return WithParamDefaults(key, key.write(owner), path);
    }
    if (IsBroken(*value)) return Value{};
    RecordOrigins(*value, path, key.info.type == "any" || !key.kinds.empty());
    if (!key.read(owner, *value, {&diagnostics_, path, &key.info, key.kinds})) return Value{};
    return WithParamDefaults(key, WithNamesMarked(key.write(owner), path), path);
  }

  // A Named with the defaults of its parameters written out.
  Value WithParamDefaults(const Key& key, Value written, const std::string& path) {
    if (key.kinds.empty() || written.is_list() || written.is_null() ||
        key.info.type == KeyType<PatternKinds>::text)
      return written;
    if (written.is_scalar()) written = Value::Map({{"name", {}, written}});
    for (const NamedKind& kind : key.kinds) {
      if (kind.name != written.members[0].value.text) continue;
      for (const FieldInfo& param : kind.params) {
        if (param.default_text.empty() || param.default_text.starts_with('(') ||
            param.default_text == "None" || written.Find(param.name))
          continue;
        loaded_.origins.push_back({path + "." + param.name, {}});
        written.members.push_back({param.name, {}, Value::Scalar(param.default_text)});
      }
    }
    return written;
  }

  // Whether a sibling key is this one misspelled: a typo is one error, reported by ReportUnknown.
  static bool IsMisspelt(const Key& key, const Value* section) {
    if (!section || !section->is_map()) return false;
    return std::any_of(
        section->members.begin(), section->members.end(), [&key](const Member& member) {
          return member.key != key.info.name &&
                 (IsAlso(key.info, member.key) ||
                  Nearest(member.key, std::vector<std::string>{key.info.name}) == key.info.name);
        });
  }

  void ReportMissing(const Key& key, const Member* member, const Value* section,
                     const std::string& path) {
    const Place place = member                      ? member->place
                        : section && section->place ? section->place
                                                    : Place{0, 1, 1, 1};
    const size_t dot = path.rfind('.');
    diagnostics_.Error(place,
                       dot == std::string::npos
                           ? format("the configuration has no '{}'", path)
                           : format("{} needs the key '{}'", path.substr(0, dot), key.info.name),
                       format("{}{}", key.info.name, " " + key.Describe()));
  }

  // Raw values (the net) record the origin of each scalar, so that deep overrides show, up to paths
  // of a length that people write.
  void RecordOrigins(const Value& value, const std::string& path, bool deep) {
    if (!deep || value.is_scalar() || value.is_null() || path.size() > kLongestPath) {
      loaded_.origins.push_back({path, value.place});
      return;
    }
    for (size_t i = 0; i < value.list.size(); ++i)
      RecordOrigins(value.list[i], format("{}.{}", path, i), true);
    for (const Member& m : value.members) RecordOrigins(m.value, path + "." + m.key, true);
  }

  void ReportUnknown(const std::vector<Key>& keys, const Value& section, const std::string& path) {
    for (const Member& member : section.members) {
      const auto known = std::find_if(keys.begin(), keys.end(),
                                      [&](const Key& k) { return k.info.name == member.key; });
      if (known == keys.end()) {
        diagnostics_.Error(
            member.place,
            path.empty() ? format("unknown key '{}'", member.key)
                         : format("{} has no key '{}'", path, member.key),
            Suggest(keys, member, path, diagnostics_.sources().IsCommandLine(member.place)));
        continue;
      }
      const bool used = std::any_of(keys.begin(), keys.end(), [&](const Key& k) {
        return k.info.name == member.key && !IsShadowed(keys, k, &section);
      });
      if (!used && !member.value.is_null())
        ReportNotForSelected(keys, *known, member, section, path);
    }
  }

  void ReportNotForSelected(const std::vector<Key>& keys, const Key& key, const Member& member,
                            const Value& section, const std::string& path) {
    const std::string selected = Selected(keys, key.info.selector, &section);
    const auto selector = std::find_if(
        keys.begin(), keys.end(), [&](const Key& k) { return k.info.name == key.info.selector; });
    const std::vector<std::string>& choices = selector->info.choices;
    const bool none = selected.empty() && !selector->info.required;
    if (!none && std::find(choices.begin(), choices.end(), selected) == choices.end())
      return;  // reported at the selector
    const std::string owner = none ? format("{} without a '{}'", path, key.info.selector)
                                   : format("{} '{}'", path, selected);
    std::string help = key.info.only_for == std::vector<std::string>{""}
                           ? format("this key is for data.val without a '{}'", key.info.selector)
                           : format("it is valid only for {}", join(key.info.only_for, ", "));
    const Member* kind = section.Find(key.info.selector);
    const SourceMap& sources = diagnostics_.sources();
    if (sources.IsCommandLine(member.place) !=
        sources.IsCommandLine(kind ? kind->place : section.place))
      help += format("; '{0}={{...}}' on the command line replaces all of {0}", path);
    diagnostics_.Error(member.place, format("{} has no key '{}'", owner, member.key), help);
  }

  Diagnostics& diagnostics_;
  LoadedConfig& loaded_;
  std::map<std::string, Constant> vars_;
  const Names names_ = NamesOf(vars_);
  std::vector<Place> broken_;  // values whose expression failed
};

// Validation data is read as the training data, where its kind says so.
void TakeFromTraining(LoadedConfig* loaded, Diagnostics* diagnostics) {
  const SourceConfig& train = loaded->config.data.train;
  SourceConfig& val = loaded->config.data.val;
  const io::SourceKind* const kind = io::Sources().Find(val.source);
  if (!kind || val.source != train.source || diagnostics->num_errors() > 0) return;
  Value& data = loaded->resolved.Find("data")->value;
  for (const std::string& key : kind->of_training) {
    const std::string text = train.Param(key);
    const Member* const resolved = data.Find("train")->value.Find(key);
    if (const Place place = loaded->PlaceOf("data.val." + key); place && val.Param(key) != text) {
      diagnostics->Error(
          place,
          format("data.val.{}: validation data is read as the training data, where it is {}", key,
                 resolved && !text.empty() ? ToFlow(resolved->value) : "not given"),
          format("remove it, or set data.train.{}", key));
    } else if (!place) {
      SetParam(key, text, &val.params);
      Member* const own = data.Find("val")->value.Find(key);
      if (own && resolved) own->value = resolved->value;
    }
  }
}

// The default name of a configuration; config.yaml of a run, which has the same name in every run,
// keeps its own.
void TakeName(const std::string& name, LoadedConfig* loaded) {
  loaded->config.name = name;
  if (Member* written = loaded->resolved.Find("name"))
    written->value = Value::Scalar(Escaped(name), {}, true);
}

}  // namespace

Place LoadedConfig::PlaceOf(std::string_view path) const {
  const auto found = std::find_if(origins.begin(), origins.end(),
                                  [&](const KeyOrigin& o) { return o.path == path; });
  return found == origins.end() ? Place{} : found->place;
}

const char* WhyNoRunName(std::string_view name) {
  constexpr size_t kLongest = 200;
  if (name.find('/') != std::string_view::npos)
    return "it names a single folder and must not contain '/'; use --out DIR to choose the "
           "location";
  if (std::any_of(name.begin(), name.end(), [](unsigned char c) { return c < ' ' || c == 0x7f; }))
    return "it contains a control character";
  return name.size() > kLongest ? "it is longer than 200 bytes" : nullptr;
}

LoadedConfig LoadConfig(const LoadRequest& given, Diagnostics* diagnostics) {
  LoadedConfig loaded;
  LoadRequest request = given;
  for (std::string& file : request.files) file = ShippedFile(file).value_or(file).string();
  Loader(diagnostics, &loaded).Run(LoadDocument(request, diagnostics));
  TakeFromTraining(&loaded, diagnostics);
  CheckRelations(loaded, diagnostics);
  if (loaded.config.train.metrics) CheckMetrics(loaded, diagnostics);
  if (loaded.config.name.empty() && !request.files.empty())
    TakeName(std::filesystem::path(request.files[0]).stem().string(), &loaded);
  if (const char* why = WhyNoRunName(loaded.config.name))
    diagnostics->Error(loaded.PlaceOf("name"), format("invalid run name: {}", why));
  return loaded;
}

void MarkTexts(const std::vector<Place>& texts, Value* resolved) {
  for (const char* key : {"net", "blocks"}) {
    if (Member* member = resolved->Find(key)) MarkTextsIn(texts, &member->value);
  }
}

std::string OriginText(const std::vector<KeyOrigin>& origins, const SourceMap& sources) {
  size_t width = 0;
  for (const KeyOrigin& origin : origins) width = std::max(width, origin.path.size());
  std::string text;
  for (const KeyOrigin& origin : origins)
    text += format("{:<{}}  {}\n", origin.path, width, sources.Origin(origin.place));
  return text;
}

}  // namespace mxtrain::config
