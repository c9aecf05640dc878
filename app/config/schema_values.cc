// SPDX-License-Identifier: Apache-2.0
// Readers and writers of the types of configuration keys, except kinds with parameters
// (schema_named.cc).
#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <limits>
#include <utility>

#include "app/config/address.h"
#include "app/config/schema.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/optimizer/optimizer.h"

namespace mxtrain::config {
namespace {

template <typename T>
bool ReadInteger(const Value& value, const ReadContext& context, T* out) {
  if (const std::optional<int64_t> integer = value.AsInteger();
      integer && std::in_range<T>(*integer)) {
    *out = static_cast<T>(*integer);
    return true;
  }
  std::string what = "an integer";
  const std::optional<double> number = value.AsNumber();
  if (number && std::trunc(*number) == *number) {
    T low = std::in_range<T>(-kMostInteger) ? static_cast<T>(-kMostInteger)
                                            : std::numeric_limits<T>::min();
    T high = std::in_range<T>(kMostInteger) ? static_cast<T>(kMostInteger)
                                            : std::numeric_limits<T>::max();
    if (context.info && context.info->bounds.low > static_cast<double>(low))
      low = static_cast<T>(context.info->bounds.low);
    if (context.info && context.info->bounds.high < static_cast<double>(high))
      high = static_cast<T>(context.info->bounds.high);
    what += format(" from {} to {}", low, high);
  }
  if (context.info && !context.info->word.empty()) what += " or " + context.info->word;
  return Expected(what.c_str(), value, context);
}

// Factors of rates and losses.
bool ReadMultiplier(const Value& value, const ReadContext& context, double* out) {
  const std::optional<double> number = value.AsNumber();
  if (!number || *number < 0 || *number > kMostMultiplier) {
    return Expected(format("a number from 0 to {}", kMostMultiplier).c_str(), value, context);
  }
  *out = *number;
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

}  // namespace

bool Expected(const char* what, const Value& value, const ReadContext& context, std::string help) {
  if (help.empty() && context.info) help = HintFor(value, context.info->help);
  context.diagnostics->Error(
      value.place, format("{}: expected {}, got {}", context.path, what, value.Describe()),
      std::move(help));
  return false;
}

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
  if (!params::FitsFloat32(*number)) return Expected("a finite number", value, context);
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
    good = ReadMultiplier(m.value, context, &out->emplace_back(m.key, 0).second) && good;
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
    good = ReadMultiplier(item, context, &out->numbers.emplace_back()) && good;
  }
  return good;
}
bool Read(const Value& value, const ReadContext& context, NormalizedColumns* out) {
  *out = {};
  out->automatic = value.is_scalar() && value.text == "auto";
  if (out->automatic || value.is_null() || (value.is_scalar() && value.text == "none")) return true;
  static constexpr const char* kForm =
      "none, auto, or a map with lists of columns: columns or except, log, quantile";
  if (!value.is_map() || value.members.empty()) return Expected(kForm, value, context);
  out->automatic = true;
  bool good = true;
  for (const Member& given : value.members) {
    std::vector<std::string>* const names = given.key == "columns"    ? &out->columns
                                            : given.key == "except"   ? &out->except
                                            : given.key == "log"      ? &out->log
                                            : given.key == "quantile" ? &out->quantile
                                                                      : nullptr;
    if (!names) return Expected(kForm, value, context);
    good = Read(given.value, context, names) && good;
    if (given.key == "columns") out->automatic = false;
  }
  if (!out->columns.empty() && !out->except.empty()) return Expected(kForm, value, context);
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
    Column column{m.key, {}, {}};
    const std::vector<Value> names = m.value.is_list() ? m.value.list : std::vector<Value>{m.value};
    for (const Value& name : names) {
      if (!name.is_scalar()) good = Expected("the name of a column", name, context);
      column.columns.push_back(name.text);
      column.places.push_back(name.place);
    }
    out->push_back(std::move(column));
  }
  return good;
}

namespace {

// The key whose file may be at an address, which stays as it is.
constexpr const char* kMayBeElsewhere = "train.weights.file";

bool IsValidAddress(const Value& value, const ReadContext& context) {
  try {
    CheckAddress(SplitPin(value.text).file);
    return true;
  } catch (const Error& error) {
    context.diagnostics->Error(value.place, format("{}: {}", context.path, error.what()));
    return false;
  }
}

}  // namespace

bool ReadPath(const Value& value, const ReadContext& context, std::string* out) {
  const bool optional =
      context.info && !context.info->required && context.info->default_text.empty();
  if (!value.is_scalar() || (value.text.empty() && !optional))
    return Expected("a path", value, context);
  if (value.text.empty()) return out->clear(), true;
  if (context.path == kMayBeElsewhere && IsAddress(value.text)) {
    *out = value.text;
    return IsValidAddress(value, context);
  }
  if (value.text.find('\0') != std::string::npos)
    return Expected("a path, which cannot contain NUL", value, context);
  const std::filesystem::path base = value.place
                                         ? context.diagnostics->sources().Folder(value.place.file)
                                         : std::filesystem::current_path();
  *out = std::filesystem::absolute(base / value.text).lexically_normal().string();
  return true;
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
  return Value::Scalar(params::Print(value));
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
Value Write(const NormalizedColumns& value) {
  Value map = Value::Map({});
  const auto add = [&map](const char* key, const std::vector<std::string>& names) {
    if (!names.empty()) map.members.push_back({key, {}, Write(names)});
  };
  add("columns", value.columns);
  add("except", value.except);
  add("log", value.log);
  add("quantile", value.quantile);
  return map.members.empty() ? Value::Scalar(value.automatic ? "auto" : "none") : map;
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
