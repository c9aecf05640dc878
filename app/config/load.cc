// SPDX-License-Identifier: Apache-2.0
#include "app/config/load.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "app/config/other_tools.h"
#include "app/config/schema.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/io/augmenter.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::config {
namespace {

constexpr size_t kLongestPath = 200;  // "net.layers.0.Convolution.num_filter"

std::vector<std::string> KeysOf(const std::map<std::string, Constant>& constants) {
  std::vector<std::string> keys;
  for (const auto& [key, value] : constants) keys.push_back(key);
  return keys;
}

// Whether another tool uses this name for the key.
bool IsAlso(const KeyInfo& info, std::string_view name) {
  return std::find(info.also.begin(), info.also.end(), name) != info.also.end();
}

// Without curly quotes and no-break spaces, which word processors and web pages insert.
std::string WithoutOrnament(std::string word) {
  for (const std::string_view ornament : {"\u201c", "\u201d", "\u2018", "\u2019", "\u00a0"}) {
    for (size_t at = word.find(ornament); at != std::string::npos; at = word.find(ornament))
      word.erase(at, ornament.size());
  }
  return word;
}

// The same for the parameters of the kinds of a key.
std::string FindParam(const std::vector<NamedKind>& kinds, std::string_view name,
                      const std::string& path) {
  for (const NamedKind& kind : kinds) {
    for (const auto& [other, param] : kind.params_also) {
      const bool has = std::any_of(kind.params.begin(), kind.params.end(),
                                   [&, p = &param](const FieldInfo& f) { return f.name == *p; });
      if (other == name && has) return path + "." + param;
    }
    for (const FieldInfo& field : kind.params) {
      if (field.name == name) return path + "." + field.name;
    }
  }
  return "";
}

// A key anywhere in the table that a word may mean.
struct Meant {
  std::string path;
  bool parameter = false;  // a parameter of one of the key's kinds
  // Keys before parameters, and shallower ones first.
  auto Rank() const { return std::pair(parameter, std::count(path.begin(), path.end(), '.')); }
};

void FindMeant(const std::vector<Key>& keys, std::string_view name, const std::string& prefix,
               std::vector<Meant>* found) {
  for (const Key& key : keys) {
    const std::string path = prefix + key.info.name;
    if (key.info.name == name || IsAlso(key.info, name)) {
      found->push_back({path});
      continue;
    }
    FindMeant(key.keys, name, path + ".", found);
    const std::string param = key.info.type == "list" ? "" : FindParam(key.kinds, name, path);
    if (!param.empty()) found->push_back({param, true});
  }
}

// The path of the key with this name, or with this name in other tools; "" if there is none or more
// than one. If training and validation both have it, training is meant.
std::string FindElsewhere(std::string_view name) {
  std::vector<Meant> found;
  FindMeant(Schema(), name, "", &found);
  std::erase_if(found, [](const Meant& meant) { return meant.path.starts_with("data.val."); });
  if (found.empty()) return "";
  const auto first =
      std::min_element(found.begin(), found.end(),
                       [](const Meant& a, const Meant& b) { return a.Rank() < b.Rank(); });
  const auto same = std::count_if(found.begin(), found.end(), [&](const Meant& meant) {
    return meant.Rank() == first->Rank() && meant.path != first->path;
  });
  return same > 0 ? "" : first->path;
}

class Loader {
 public:
  Loader(Diagnostics* diagnostics, LoadedConfig* loaded)
      : diagnostics_(*diagnostics), loaded_(*loaded) {}

  void Run(Value root) {
    if (const Value* vars = root.Get("vars")) vars_ = EvaluateVars(*vars, &diagnostics_);
    names_.lookup = [this](std::string_view name) -> std::optional<Constant> {
      const auto found = vars_.find(std::string(name));
      return found == vars_.end() ? std::nullopt : std::optional(found->second);
    };
    names_.known = [this] { return KeysOf(vars_); };
    for (Member& member : root.members) {
      if (member.key != "net" && member.key != "blocks" && member.key != "vars")
        ExpandAll(&member.value);
    }
    loaded_.resolved = ReadSection(Schema(), &loaded_.config, &root, "", {}, true);
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
                         KeyList(keys));
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

  Value ReadKey(const Key& key, void* owner, const Member* member, const Value* section,
                const std::string& prefix, bool wanted) {
    const std::string path = prefix.empty() ? key.info.name : prefix + "." + key.info.name;
    const Value* value = member && !member->value.is_null() ? &member->value : nullptr;
    if (key.info.required && wanted && !value && !IsMisspelt(key, section))
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
    return WithParamDefaults(key, key.write(owner), path);
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
        diagnostics_.Error(member.place,
                           path.empty() ? format("unknown key '{}'", member.key)
                                        : format("{} has no key '{}'", path, member.key),
                           Suggest(keys, member.key, path));
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
    diagnostics_.Error(member.place, format("{} has no key '{}'", owner, member.key),
                       key.info.only_for == std::vector<std::string>{""}
                           ? format("this key is for data.val without a '{}'", key.info.selector)
                           : format("it is valid only for {}", join(key.info.only_for, ", ")));
  }

  std::string Suggest(const std::vector<Key>& keys, const std::string& written,
                      const std::string& path) const {
    if (const size_t equals = written.find('='); equals != std::string::npos) {
      const std::string key = written.substr(0, written.find_last_not_of(' ', equals - 1) + 1);
      return format("did you mean '{}:{}'? a key ends in ':'", key, written.substr(equals + 1));
    }
    const std::string word = WithoutOrnament(written);
    std::vector<std::string> names;
    for (const Key& key : keys) {
      if (IsAlso(key.info, word))
        return format("did you mean '{}'? {}", key.info.name, key.Describe());
      names.push_back(key.info.name);
    }
    if (const std::string advice = AdviceForOtherTools(word); !advice.empty()) return advice;
    const std::string elsewhere = FindElsewhere(word);
    const bool at_top = elsewhere.find('.') == std::string::npos && !path.empty();
    if (!elsewhere.empty())
      return format("did you mean '{}'{}?", elsewhere, at_top ? ", at the top level" : "");
    const std::string nearest = Nearest(word, names);
    for (const Key& key : keys) {
      if (key.info.name == nearest) return format("did you mean '{}'? {}", nearest, key.Describe());
    }
    return (path.empty() ? "" : path + " ") + KeyList(keys);
  }

  static std::string KeyList(const std::vector<Key>& keys) {
    std::vector<std::string> names;
    for (const Key& key : keys) {
      if (std::find(names.begin(), names.end(), key.info.name) == names.end())
        names.push_back(key.info.name);
    }
    return format("keys: {}", join(names, ", "));
  }

  Diagnostics& diagnostics_;
  LoadedConfig& loaded_;
  std::map<std::string, Constant> vars_;
  Names names_;
  std::vector<Place> broken_;  // values whose expression failed
};

std::unique_ptr<Metric> MetricOf(const Named& metric) {
  return Metric::Create(metric.name, ParamsOfMetric(metric.params));
}

// "top_5_accuracy" of {top_k: 5}.
std::string NameInReports(const Named& metric) {
  return MetricOf(metric)->name();
}

// If several metrics are of the same kind, each is called OUTPUT_KIND; the outputs are known once
// the net is built.
bool IsCalled(const std::string& name, const std::string& kind) {
  return name == kind || name.ends_with("_" + kind);
}

// Without a source, validation data is a part of the training set, or one of its folds.
void CheckValidation(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const SourceConfig& val = loaded.config.data.val;
  if (!val.place || !val.source.empty() || diagnostics->num_errors() > 0) return;
  if (val.holdout == 0 && val.folds == 0) {
    diagnostics->Error(val.place, "data.val needs the key 'source', 'split' or 'folds'",
                       "split: 0.1 holds out a tenth of the training set, folds: 5 a fifth");
  } else if (val.holdout > 0 && val.folds > 0) {
    diagnostics->Error(loaded.PlaceOf("data.val.folds"),
                       "data.val.split and data.val.folds exclude each other", "keep one of them");
  } else if (val.folds == 0 && val.fold > 0) {
    diagnostics->Error(loaded.PlaceOf("data.val.fold"),
                       format("data.val.fold = {} needs data.val.folds", val.fold),
                       "set data.val.folds to the number of folds");
  } else if (val.folds == 1 || (val.folds > 0 && val.fold >= val.folds)) {
    diagnostics->Error(loaded.PlaceOf(val.folds == 1 ? "data.val.folds" : "data.val.fold"),
                       val.folds == 1 ? "data.val.folds = 1 leaves nothing to train on"
                                      : format("data.val.fold = {} is out of range for {} folds",
                                               val.fold, val.folds),
                       val.folds == 1 ? "use 5 or 10, for example" : "folds count from 0");
  }
}

void CheckOptimizer(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  const bool plain = train.lr_schedule.name == "constant" && train.lr_schedule.params.empty();
  if (plain || diagnostics->num_errors() > 0 ||
      Optimizer::Create(train.optimizer.name, train.optimizer.params)->takes_schedule())
    return;
  diagnostics->Error(train.lr_schedule.place,
                     format("optimizer {} requires a constant learning rate", train.optimizer.name),
                     "remove train.lr_schedule");
}

// Accuracy is undefined for an example with several classes or none.
void CheckLabelSets(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  if (loaded.config.data.train.label_delim.empty()) return;
  for (const Named& metric : *loaded.config.train.metrics) {
    const bool one_class = metric.name == "accuracy" || metric.name == "top_k" ||
                           metric.name == "f1" || metric.name == "cross_entropy" ||
                           metric.name == "perplexity";
    const bool other_label = std::any_of(metric.params.begin(), metric.params.end(),
                                         [](const auto& p) { return p.first == "label"; });
    if (!one_class || other_label) continue;
    diagnostics->Error(
        metric.place ? metric.place : loaded.PlaceOf("data.train.label_delim"),
        format("metric {} requires exactly one class per example; label_delim allows any number",
               metric.name),
        "train.metrics: [multilabel_accuracy, multilabel_f1, auc] are for multi-label data");
  }
}

// Checks each transform separately, so that errors are reported at its line.
void CheckTransforms(const std::vector<Named>& transforms, Diagnostics* diagnostics) {
  for (const Named& transform : transforms) {
    const bool last = &transform == &transforms.back();
    if (transform.name ==
        "normalize") {  // its values are per channel, and the channels are not known here
      if (!last)
        diagnostics->Error(transform.place, "normalize is not the last of the transforms",
                           "move it to the end");
      continue;
    }
    try {
      const io::Augmenter alone(std::vector<io::TransformSpec>{{transform.name, transform.params}},
                                3);
    } catch (const Error& error) {
      diagnostics->Error(transform.place, error.what());
      continue;
    }
    for (const auto& [key, text] : transform.params) {
      const std::optional<double> angle =
          key == "degrees" ? Value::Scalar(text).AsNumber() : std::nullopt;
      if (!angle || *angle == 0 || std::abs(*angle) >= 1) continue;
      diagnostics->Warning(transform.place,
                           format("{}: {} is less than a degree", transform.name, text),
                           format("angles are in degrees; {} of a full turn, as in Keras, is {}",
                                  text, 360 * *angle));
    }
  }
}

// early_stop.target must be reachable by its metric.
void CheckTarget(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  const std::optional<double>& target = train.early_stop.target;
  const std::string best = !train.best.metric.empty() ? train.best.metric[0]
                           : train.metrics->empty()   ? "loss"
                                                      : NameInReports(train.metrics->front());
  if (!target || *target <= 1 || best == "loss") return;
  for (const Named& metric : *train.metrics) {
    const std::unique_ptr<Metric> measured = MetricOf(metric);
    if (!measured->higher_is_better() || !IsCalled(best, measured->name())) continue;
    diagnostics->Error(loaded.PlaceOf("train.early_stop.target"),
                       format("train.early_stop.target = {}: {} is at most 1", *target, best),
                       format("{} % is {}", *target, *target / 100));
  }
}

// Without training steps, the model must come from a file.
void CheckEpochs(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const TrainConfig& train = loaded.config.train;
  if (train.epochs > 0 || !train.weights.file.empty()) return;
  diagnostics->Error(loaded.PlaceOf("train.epochs"),
                     "train.epochs = 0 trains nothing, and train.weights names no model to save",
                     "set train.weights.file, or at least one epoch");
}

// Constraints between keys, which the table cannot express.
void CheckRelations(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  const auto place_of = [&](std::string_view path) { return loaded.PlaceOf(path); };
  auto not_both = [&](const std::string& a, const std::string& b) {
    if (place_of(a) && place_of(b))
      diagnostics->Error(std::max(place_of(a), place_of(b)),
                         format("{} and {} exclude each other", a, b), "keep one of them");
  };
  not_both("train.clip.value", "train.clip.norm");
  const TrainConfig& train = loaded.config.train;
  CheckValidation(loaded, diagnostics);
  CheckOptimizer(loaded, diagnostics);
  if (diagnostics->num_errors() > 0) return;
  auto not_zero = [&](const std::string& key, std::optional<double> bound) {
    if (bound == 0)
      diagnostics->Error(place_of(key), format("{} = 0 removes the whole gradient", key),
                         "remove the key to disable clipping");
  };
  not_zero("train.clip.value", train.clip.value);
  not_zero("train.clip.norm", train.clip.norm);
  CheckTransforms(loaded.config.data.train.transforms, diagnostics);
  CheckTransforms(loaded.config.data.val.transforms, diagnostics);
  CheckEpochs(loaded, diagnostics);
  if (train.early_stop.min_delta > 0 && train.early_stop.patience == 0) {
    diagnostics->Error(place_of("train.early_stop.min_delta"),
                       "train.early_stop.min_delta needs train.early_stop.patience",
                       "patience: 5 stops the run after five epochs without improvement");
  }
}

// The default name of a configuration; config.yaml of a run, which has the same name in every run,
// keeps its own.
void TakeName(const std::string& name, LoadedConfig* loaded) {
  loaded->config.name = name;
  if (Member* written = loaded->resolved.Find("name"))
    written->value = Value::Scalar(name, {}, true);
}

}  // namespace

Place LoadedConfig::PlaceOf(std::string_view path) const {
  const auto found = std::find_if(origins.begin(), origins.end(),
                                  [&](const KeyOrigin& o) { return o.path == path; });
  return found == origins.end() ? Place{} : found->place;
}

void CheckMetrics(const LoadedConfig& loaded, Diagnostics* diagnostics) {
  if (diagnostics->num_errors() > 0) return;
  const TrainConfig& train = loaded.config.train;
  CheckLabelSets(loaded, diagnostics);
  CheckTarget(loaded, diagnostics);
  std::vector<std::string> names;
  for (const Named& metric : *train.metrics) names.push_back(NameInReports(metric));
  for (const std::string& best : train.best.metric) {
    const auto is_best = [&best](const std::string& name) { return IsCalled(best, name); };
    if (best == "loss" || std::any_of(names.begin(), names.end(), is_best)) continue;
    diagnostics->Error(loaded.PlaceOf("train.best.metric"),
                       format("train.best.metric: '{}' is not measured", best),
                       format("train.metrics contains {}", join(names, ", ")));
  }
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

LoadedConfig LoadConfig(const LoadRequest& request, Diagnostics* diagnostics) {
  LoadedConfig loaded;
  Loader(diagnostics, &loaded).Run(LoadDocument(request, diagnostics));
  CheckRelations(loaded, diagnostics);
  if (loaded.config.train.metrics) CheckMetrics(loaded, diagnostics);
  if (loaded.config.name.empty() && !request.files.empty())
    TakeName(std::filesystem::path(request.files[0]).stem().string(), &loaded);
  if (const char* why = WhyNoRunName(loaded.config.name))
    diagnostics->Error(loaded.PlaceOf("name"), format("invalid run name: {}", why));
  return loaded;
}

std::string OriginText(const std::vector<KeyOrigin>& origins, const SourceMap& sources) {
  size_t width = 0;
  for (const KeyOrigin& origin : origins) width = std::max(width, origin.path.size());
  std::string text;
  for (const KeyOrigin& origin : origins)
    text += format("{:<{}}  {}\n", origin.path, width, sources.Origin(origin.place));
  return text;
}

Constant ToConstant(const Value& scalar) {
  if (const std::optional<bool> truth = scalar.AsBool()) return *truth;
  if (const std::optional<double> number = scalar.AsNumber()) {
    const bool whole =
        scalar.text.find_first_of(".eEinf") == std::string::npos && scalar.AsInteger();
    return whole ? Constant(*scalar.AsInteger()) : Constant(*number);
  }
  return scalar.text;
}

bool ExpandAt(Value* scalar, const Names& names, Diagnostics* diagnostics,
              const std::vector<std::string>& notes) {
  try {
    *scalar = Expand(*scalar, names);
    return true;
  } catch (const ExpressionError& error) {
    Place place = scalar->place;
    // The text of a quoted scalar begins after its quote.
    const std::string_view line =
        place ? diagnostics->sources().Line(place.file, place.line) : std::string_view();
    const size_t found = line.find(scalar->text.substr(0, scalar->text.find('\n')),
                                   static_cast<size_t>(std::max(0, place.column - 1)));
    if (found != std::string_view::npos) {
      place.column = static_cast<int>(found + error.offset) + 1;
      place.length = static_cast<int>(error.length);
    }
    diagnostics->Error(place, error.message, error.help, notes);
    return false;
  }
}

std::map<std::string, Constant> EvaluateVars(const Value& vars, Diagnostics* diagnostics) {
  std::map<std::string, Constant> values;
  if (vars.is_null()) return values;
  if (!vars.is_map()) {
    diagnostics->Error(vars.place,
                       format("vars: expected a map of named values, got {}", vars.Describe()));
    return values;
  }
  Names names;
  names.lookup = [&](std::string_view name) -> std::optional<Constant> {
    const auto found = values.find(std::string(name));
    return found == values.end() ? std::nullopt : std::optional(found->second);
  };
  names.known = [&values] { return KeysOf(values); };
  for (const Member& member : vars.members) {
    if (member.value.is_null()) continue;  // removes the variable of an included file
    Value value = member.value;
    if (IsEnvironmentReference(member.key)) {
      diagnostics->Error(
          member.place,
          format("vars: a name in capitals, '{}', is an environment variable", member.key),
          "use lower case");
    } else if (!value.is_scalar()) {
      diagnostics->Error(value.place ? value.place : member.place,
                         format("vars.{}: expected a number, a text or a truth value, got {}",
                                member.key, value.Describe()));
    } else if (!ExpandAt(&value, names, diagnostics)) {
      value = Value::Scalar("0");
    }
    values[member.key] = ToConstant(value);
  }
  return values;
}

}  // namespace mxtrain::config
