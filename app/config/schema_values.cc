// SPDX-License-Identifier: Apache-2.0
// Readers and writers of the types of configuration keys.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>

#include "app/config/expression.h"
#include "app/config/other_tools.h"
#include "app/config/schema.h"
#include "mxtrain/base/suggest.h"

namespace mxtrain::config {
namespace {

bool Expected(const char* what, const Value& value, const ReadContext& context,
              std::string help = "") {
  if (help.empty() && context.info) help = HintFor(value, context.info->help);
  context.diagnostics->Error(
      value.place, format("{}: expected {}, got {}", context.path, what, value.Describe()),
      std::move(help));
  return false;
}

template <typename T>
bool ReadInteger(const Value& value, const ReadContext& context, T* out) {
  const std::optional<int64_t> integer = value.AsInteger();
  if (!integer) {
    const std::string or_word =
        context.info && !context.info->word.empty() ? " or " + context.info->word : "";
    return Expected(("an integer" + or_word).c_str(), value, context);
  }
  if (!std::in_range<T>(*integer))
    return Expected(std::is_unsigned_v<T> ? "an integer that is not negative" : "a smaller integer",
                    value, context);
  *out = static_cast<T>(*integer);
  return true;
}

struct UnitName {
  const char* text;
  Interval::Unit unit;
  int64_t factor;
};
constexpr UnitName kUnits[] = {
    {"epochs", Interval::Unit::kEpochs, 1},    {"epoch", Interval::Unit::kEpochs, 1},
    {"", Interval::Unit::kEpochs, 1},          {"steps", Interval::Unit::kSteps, 1},
    {"step", Interval::Unit::kSteps, 1},       {"s", Interval::Unit::kSeconds, 1},
    {"seconds", Interval::Unit::kSeconds, 1},  {"min", Interval::Unit::kSeconds, 60},
    {"minutes", Interval::Unit::kSeconds, 60}, {"h", Interval::Unit::kSeconds, 3600},
    {"hours", Interval::Unit::kSeconds, 3600},
};

// Nothing if the text does not have this form.
std::optional<Interval> ParseInterval(const Value& value) {
  if (!value.is_scalar()) return std::nullopt;
  int64_t count = 0;
  const char* end = value.text.data() + value.text.size();
  const auto [stop, status] = std::from_chars(value.text.data(), end, count);
  std::string_view unit(stop, static_cast<size_t>(end - stop));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(std::begin(kUnits), std::end(kUnits),
                                  [&](const UnitName& u) { return unit == u.text; });
  if (status != std::errc() || count < 0 || count > 1'000'000'000'000 || found == std::end(kUnits))
    return std::nullopt;
  return Interval{count * found->factor, found->unit};
}

constexpr std::pair<std::string_view, double> kByteUnits[] = {
    {"", 1},
    {"B", 1},
    {"KiB", 1024.0},
    {"MiB", 1048576.0},
    {"GiB", 1073741824.0},
    {"TiB", 1099511627776.0},
    {"kB", 1000.0},
    {"KB", 1000.0},
    {"MB", 1e6},
    {"GB", 1e9},
    {"TB", 1e12},
};

std::optional<std::string> TextOfElement(const Value& value, const std::string& type) {
  if (type == "integer")
    return value.AsInteger() ? std::optional(std::to_string(*value.AsInteger())) : std::nullopt;
  if (type == "number") return value.AsNumber() ? std::optional(value.text) : std::nullopt;
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
  const Value* params =
      nullptr;  // the map, with `name` still in it; or the value of the first parameter
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
                                 HintFor(member.value, param.help));
      return false;
    }
    out->params.emplace_back(param.name, *text);
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

bool Read(const Value& value, const ReadContext& context, bool* out) {
  const std::optional<bool> truth = value.AsBool();
  if (!truth) return Expected("true or false", value, context);
  *out = *truth;
  return true;
}
bool Read(const Value& value, const ReadContext& context, int* out) {
  return ReadInteger(value, context, out);
}
bool Read(const Value& value, const ReadContext& context, int64_t* out) {
  return ReadInteger(value, context, out);
}
bool Read(const Value& value, const ReadContext& context, uint64_t* out) {
  return ReadInteger(value, context, out);
}
bool Read(const Value& value, const ReadContext& context, double* out) {
  const std::optional<double> number = value.AsNumber();
  if (!number) return Expected("a number", value, context);
  *out = *number;
  return true;
}
bool Read(const Value& value, const ReadContext& context, std::string* out) {
  if (!value.is_scalar()) return Expected("a text", value, context);
  const std::vector<std::string>* choices =
      context.info && !context.info->choices.empty() ? &context.info->choices : nullptr;
  const bool unset = value.text.empty() && choices && !context.info->required &&
                     context.info->default_text.empty();
  if (choices && !unset &&
      std::find(choices->begin(), choices->end(), value.text) == choices->end()) {
    const std::string nearest = Nearest(value.text, *choices);
    context.diagnostics->Error(value.place,
                               format("{}: there is no '{}'", context.path, value.text),
                               nearest.empty() ? format("there are {}", join(*choices, ", "))
                                               : format("did you mean '{}'?", nearest));
    return false;
  }
  *out = value.text;
  return true;
}
std::optional<ByteCount> ParseByteCount(std::string_view text) {
  double count = 0;
  const auto [stop, status] = std::from_chars(text.data(), text.data() + text.size(), count);
  std::string_view unit(stop, static_cast<size_t>(text.data() + text.size() - stop));
  while (unit.starts_with(' ')) unit.remove_prefix(1);
  const auto found = std::find_if(std::begin(kByteUnits), std::end(kByteUnits),
                                  [&](const auto& u) { return unit == u.first; });
  if (status != std::errc() || found == std::end(kByteUnits) ||
      !(count >= 0 && count * found->second < 1e18))
    return std::nullopt;
  return ByteCount{static_cast<int64_t>(std::llround(count * found->second))};
}
bool Read(const Value& value, const ReadContext& context, Interval* out) {
  const std::optional<Interval> interval = ParseInterval(value);
  if (!interval) return Expected("an interval such as 1epoch, 500steps or 10min", value, context);
  *out = *interval;
  return true;
}
bool Read(const Value& value, const ReadContext& context, Duration* out) {
  const std::optional<Interval> interval = ParseInterval(value);
  const bool never = interval && interval->count == 0;
  if (!interval || (!never && interval->unit != Interval::Unit::kSeconds)) {
    return Expected("a time with its unit such as 90min, 2h or 30s", value, context);
  }
  out->seconds = interval->count;
  return true;
}
bool Read(const Value& value, const ReadContext& context, PatternNumbers* out) {
  if (!value.is_map()) return Expected("a map from names to numbers, {fc*: 10}", value, context);
  out->clear();
  bool good = true;
  for (const Member& m : value.members) {
    if (m.value.is_null()) continue;  // removes a pattern of an included file
    const std::optional<double> number = m.value.AsNumber();
    if (number && *number >= 0) {
      out->emplace_back(m.key, *number);
    } else {
      good = Expected("a number that is at least 0", m.value, context);
    }
  }
  return good;
}
bool Read(const Value& value, const ReadContext& context, ClassWeights* out) {
  *out = {};
  out->automatic = value.is_scalar() && value.text == "auto";
  if (out->automatic || value.is_null()) return true;
  if (value.is_map()) return Read(value, context, &out->by_name);
  if (!value.is_list()) {
    const bool other_word =
        value.is_scalar() && (value.text == "balanced" || value.text == "balance");
    return Expected("auto, a list of numbers, or a map from classes to numbers", value, context,
                    other_word ? "did you mean 'auto'?" : "");
  }
  bool good = true;
  for (const Value& item : value.list) {
    const std::optional<double> number = item.AsNumber();
    if (number && *number >= 0) {
      out->numbers.push_back(*number);
    } else {
      good = Expected("a number that is at least 0", item, context);
    }
  }
  return good;
}
bool Read(const Value& value, const ReadContext& context, ByteCount* out) {
  const std::optional<ByteCount> read =
      value.is_scalar() ? ParseByteCount(value.text) : std::nullopt;
  if (!read) return Expected("a size such as 2GiB, 512MiB or 1000000", value, context);
  *out = *read;
  return true;
}
bool Read(const Value& value, const ReadContext& context, ByteLimit* out) {
  *out = {};
  const std::string_view text =
      value.is_scalar() ? std::string_view(value.text) : std::string_view();
  if (!text.ends_with('%')) {
    const std::optional<ByteCount> read = ParseByteCount(text);
    if (!read)
      return Expected("a size such as 2GiB, 512MiB or 1000000, or a percentage such as 75%", value,
                      context);
    out->bytes = read->bytes;
    return true;
  }
  const char* const end = text.data() + text.size() - 1;
  const auto [stop, status] = std::from_chars(text.data(), end, out->percent);
  if (status == std::errc() && stop == end && out->percent > 0 && out->percent <= 100) return true;
  return Expected("a percentage above 0% and up to 100%", value, context);
}
bool Read(const Value& value, const ReadContext&, Value* out) {
  *out = value;
  return true;
}
bool Read(const Value& value, const ReadContext& context, std::vector<Column>* out) {
  static constexpr const char* kForm = "a map from inputs to columns, {x: [a, b], y: label}";
  if (!value.is_map()) return Expected(kForm, value, context);
  bool good = true;
  for (const Member& m : value.members) {
    Column column{m.key, {}};
    const std::vector<Value> names = m.value.is_list() ? m.value.list : std::vector<Value>{m.value};
    for (const Value& name : names) {
      if (!name.is_scalar()) good = Expected("the name of a column", name, context);
      column.columns.push_back(name.text);
    }
    out->push_back(std::move(column));
  }
  return good;
}

std::optional<std::string> TextOfField(const Value& value, const FieldInfo& field) {
  const std::string& type = field.type;
  if (!field.choices.empty() || type.find(" | ") != std::string::npos) {
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

std::string PhraseOfField(const FieldInfo& field) {
  if (field.type == "integer") return "an integer";
  if (field.type == "number") return "a number";
  if (field.type == "boolean") return "true or false";
  if (field.type == "tuple") return "an integer or a list of integers";
  if (field.type == "list of numbers") return "a list of numbers";
  if (field.type == "string") return "a text";
  return field.choices.empty() ? field.type : format("{}", join(field.choices, ", "));
}

std::string DescribeField(const FieldInfo& field) {
  std::string text = field.required ? "required, " : "";
  text += field.type + (field.range.empty() ? "" : " " + field.range);
  if (!field.required && !field.default_text.empty()) text += ", default " + field.default_text;
  return format("({}{})", text, field.help.empty() ? "" : ": " + field.help);
}

bool ReadPath(const Value& value, const ReadContext& context, std::string* out) {
  const bool optional =
      context.info && !context.info->required && context.info->default_text.empty();
  if (!value.is_scalar() || (value.text.empty() && !optional))
    return Expected("a path", value, context);
  if (value.text.empty()) return out->clear(), true;
  if (value.text.find('\0') != std::string::npos)
    return Expected("a path, which cannot contain NUL", value, context);
  const std::filesystem::path base = value.place
                                         ? context.diagnostics->sources().Folder(value.place.file)
                                         : std::filesystem::current_path();
  *out = std::filesystem::absolute(base / value.text).lexically_normal().string();
  return true;
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
  return good && CheckParams(*kind, *out, parts->params, context);
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

Value Write(bool value) {
  return Value::Scalar(value ? "true" : "false");
}
Value Write(int value) {
  return Value::Scalar(std::to_string(value));
}
Value Write(int64_t value) {
  return Value::Scalar(std::to_string(value));
}
Value Write(uint64_t value) {
  return Value::Scalar(std::to_string(value));
}
Value Write(double value) {
  return Value::Scalar(std::isinf(value) ? (value < 0 ? "-.inf" : ".inf") : params::Print(value));
}
Value Write(const std::string& value) {
  return Value::Scalar(value, {}, true);
}
Value Write(const Interval& value) {
  const char* unit = value.unit == Interval::Unit::kEpochs  ? "epochs"
                     : value.unit == Interval::Unit::kSteps ? "steps"
                                                            : "s";
  return Value::Scalar(std::to_string(value.count) + unit);
}
Value Write(const ByteCount& value) {
  return Value::Scalar(std::to_string(value.bytes));
}
Value Write(const ByteLimit& value) {
  return value.percent > 0 ? Value::Scalar(format("{}%", value.percent))
                           : Write(static_cast<const ByteCount&>(value));
}
Value Write(const Duration& value) {
  return Value::Scalar(value.seconds == 0 ? "0" : std::to_string(value.seconds) + "s");
}
Value Write(const PatternNumbers& value) {
  Value map = Value::Map({});
  for (const auto& [pattern, number] : value) map.members.push_back({pattern, {}, Write(number)});
  return map;
}
Value Write(const ClassWeights& value) {
  if (value.automatic) return Value::Scalar("auto");
  return value.by_name.empty() ? Write(value.numbers) : Write(value.by_name);
}
Value Write(const Named& value) {
  if (value.params.empty()) return Value::Scalar(value.name);
  Value map = Value::Map({{"name", {}, Value::Scalar(value.name)}});
  for (const auto& [key, text] : value.params) {
    Value v = Value::Scalar(text == "True" ? "true" : text == "False" ? "false" : text);
    if (text.starts_with('(')) {
      std::vector<std::string> parts;
      params::Parse(text, &parts);
      v = Value::List({});
      for (const std::string& part : parts) v.list.push_back(Value::Scalar(part));
    }
    map.members.push_back({key, {}, std::move(v)});
  }
  return map;
}
Value Write(const PatternKinds& value) {
  Value map = Value::Map({});
  for (const auto& [pattern, named] : value) map.members.push_back({pattern, {}, Write(named)});
  return map;
}
Value Write(const Value& value) {
  return value;
}
Value Write(const std::vector<Column>& value) {
  Value map = Value::Map({});
  for (const Column& column : value) {
    map.members.push_back(
        {column.input,
         {},
         column.columns.size() == 1 ? Write(column.columns[0]) : Write(column.columns)});
  }
  return map;
}

}  // namespace mxtrain::config
