// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/params.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"

namespace mxtrain {

bool IsHiddenKey(std::string_view key) {
  return key.size() > 4 && key.starts_with("__") && key.ends_with("__");
}

namespace params {
namespace {

[[noreturn]] void Expect(const char* what, std::string_view text) {
  Throw(ErrorKind::kConfig, "expected {}, got '{}'", what, Shortened(text));
}

template <typename T>
void ParseNumber(std::string_view text, T* value, const char* what) {
  std::string_view t = Trim(text);
  if (t.size() > 1 && t.front() == '+') t.remove_prefix(1);
  const auto [end, status] = std::from_chars(t.data(), t.data() + t.size(), *value);
  if constexpr (std::is_floating_point_v<T>) {
    if (status == std::errc::result_out_of_range && end == t.data() + t.size()) {
      const double wide = std::strtod(std::string(t).c_str(), nullptr);
      if (!FitsFloat32(wide)) ThrowTooLarge(text);
      *value = static_cast<T>(wide);  // 0, or nearly
      return;
    }
  }
  if (status != std::errc() || end != t.data() + t.size()) Expect(what, text);
}

template <typename T>
std::string PrintNumber(T value) {
  char buffer[64];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  return std::string(buffer, result.ptr);
}

std::string_view WithoutBrackets(std::string_view text) {
  const std::string_view t = Trim(text);
  const bool bracketed = t.size() >= 2 && ((t.front() == '(' && t.back() == ')') ||
                                           (t.front() == '[' && t.back() == ']'));
  return bracketed ? t.substr(1, t.size() - 2) : t;
}

// Splits "(a, b)", "[a, b]" or "a, b" at its commas.
std::vector<std::string_view> SplitList(std::string_view text) {
  std::string_view t = WithoutBrackets(text);
  std::vector<std::string_view> parts;
  while (!Trim(t).empty()) {
    const size_t comma = t.find(',');
    parts.push_back(Trim(t.substr(0, comma)));
    if (comma == std::string_view::npos) break;
    t.remove_prefix(comma + 1);
  }
  return parts;
}

// Removes a quoted text from the front of *text, and what follows it up to the next comma.
std::string TakeQuoted(std::string_view* text) {
  std::string value;
  size_t i = 1;
  for (; i < text->size() && (*text)[i] != '"'; ++i) {
    if ((*text)[i] == '\\' && i + 1 < text->size()) ++i;
    value += (*text)[i];
  }
  const size_t comma = text->find(',', i);
  text->remove_prefix(comma == std::string_view::npos ? text->size() : comma + 1);
  return value;
}

// A list element as text, quoted if it would not parse back otherwise.
std::string QuoteInList(const std::string& text) {
  const bool plain =
      !text.empty() && text.find_first_of(",\"()[]\\") == std::string::npos && Trim(text) == text;
  if (plain) return text;
  std::string quoted = "\"";
  for (char c : text) quoted += c == '"' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
  return quoted + "\"";
}

std::string Describe(const FieldInfo& info) {
  return format("{}{}{}", info.type, info.range.empty() ? "" : " " + info.range,
                info.help.empty() ? "" : ": " + info.help);
}

}  // namespace

void Parse(std::string_view text, bool* value) {
  const std::string lower = Lower(Trim(text));
  if (lower == "true" || lower == "1") {
    *value = true;
  } else if (lower == "false" || lower == "0") {
    *value = false;
  } else {
    Expect("True or False", text);
  }
}
void Parse(std::string_view text, int* value) {
  ParseNumber(text, value, "an integer");
}
void Parse(std::string_view text, int64_t* value) {
  ParseNumber(text, value, "an integer");
}
void Parse(std::string_view text, uint32_t* value) {
  int64_t wide = 0;
  ParseNumber(text, &wide, "an integer");
  constexpr uint32_t kMost = std::numeric_limits<uint32_t>::max();
  if (wide < 0 || wide > int64_t{kMost})
    ThrowOutOfRange(std::string(Trim(text)), RangeText({0, double{kMost}}, /*integer=*/true));
  *value = static_cast<uint32_t>(wide);
}
void Parse(std::string_view text, float* value) {
  ParseNumber(text, value, "a number");
}
void Parse(std::string_view text, double* value) {
  ParseNumber(text, value, "a number");
}
void Parse(std::string_view text, std::string* value) {
  *value = std::string(text);
}
void Parse(std::string_view text, TShape* value) {
  *value = TShape::Parse(text);
}
void Parse(std::string_view text, DType* value) {
  *value = ParseDType(Trim(text));
}
void Parse(std::string_view text, std::vector<double>* value) {
  value->clear();
  for (std::string_view part : SplitList(text))
    ParseNumber(part, &value->emplace_back(), "a list of numbers");
}
void Parse(std::string_view text, std::vector<std::string>* value) {
  value->clear();
  for (std::string_view rest = Trim(WithoutBrackets(text)); !rest.empty(); rest = Trim(rest)) {
    if (rest.front() == '"') {
      value->push_back(TakeQuoted(&rest));
      continue;
    }
    const size_t comma = rest.find(',');
    value->emplace_back(Trim(rest.substr(0, comma)));
    rest.remove_prefix(comma == std::string_view::npos ? rest.size() : comma + 1);
  }
}

std::string Print(bool value) {
  return value ? "True" : "False";
}
std::string Print(int value) {
  return PrintNumber(value);
}
std::string Print(int64_t value) {
  return PrintNumber(value);
}
std::string Print(uint32_t value) {
  return PrintNumber(value);
}
std::string Print(float value) {
  return PrintNumber(value);
}
std::string Print(double value) {
  return PrintNumber(value);
}
std::string Print(const std::string& value) {
  return value;
}
std::string Print(const TShape& value) {
  return value.ToTuple();
}
std::string Print(DType value) {
  return NameOf(value);
}
std::string Print(const std::vector<double>& value) {
  std::string text = "(";
  for (size_t i = 0; i < value.size(); ++i) text += (i ? ", " : "") + PrintNumber(value[i]);
  return text + ")";
}
std::string Print(const std::vector<std::string>& value) {
  std::vector<std::string> parts;
  for (const std::string& text : value) parts.push_back(QuoteInList(text));
  return format("({})", join(parts, ", "));
}

bool Hold(const Bounds& bounds, double value) {
  const bool above = bounds.above ? static_cast<double>(static_cast<float>(value)) > bounds.low
                                  : value >= bounds.low;
  return above && (bounds.below ? value < bounds.high : value <= bounds.high);
}

std::string RangeText(const Bounds& bounds, bool integer) {
  const auto& [low, high, above, below] = bounds;
  auto number = [integer](double v) {
    return integer ? PrintNumber(static_cast<int64_t>(v)) : PrintNumber(v);
  };
  const bool open_low = std::isinf(low),
             open_high = std::isinf(high) || (integer && high >= 2147483647.0);
  if (!open_low && !open_high && !above && !below) return number(low) + " .. " + number(high);
  std::vector<std::string> parts;
  if (!open_low) parts.push_back((above ? "> " : ">= ") + number(low));
  if (!open_high) parts.push_back((below ? "< " : "<= ") + number(high));
  return format("{}", join(parts, ", "));
}

bool FitsFloat32(double value) {
  return std::abs(value) <= static_cast<double>(std::numeric_limits<float>::max());
}

void ThrowTooLarge(std::string_view text) {
  Throw(ErrorKind::kConfig, "expected a finite number of at most {:.2g} (float32), got '{}'",
        std::numeric_limits<float>::max(), Shortened(text));
}

void ThrowOutOfRange(const std::string& value, const std::string& range) {
  Throw(ErrorKind::kConfig, "{} is out of range ({})", value, range);
}

void ThrowNoChoice(std::string_view text, const std::vector<std::string>& choices) {
  Throw(ErrorKind::kConfig, "'{}' is not one of {}{}", Shortened(text), join(choices, ", "),
        DidYouMean(text, choices));
}

namespace {

// Its index. Throws kConfig if there is none of that name.
size_t IndexOf(std::span<const Field> fields, std::string_view key, std::string_view owner) {
  const auto found = std::find_if(fields.begin(), fields.end(),
                                  [key](const Field& f) { return f.info.name == key; });
  if (found != fields.end()) return static_cast<size_t>(found - fields.begin());
  std::vector<std::string> names;
  for (const Field& field : fields) names.push_back(field.info.name);
  const std::string nearest = DidYouMean(key, names);
  Throw(ErrorKind::kConfig, "{} has no parameter '{}'{}", owner, key,
        !nearest.empty() ? nearest
        : names.empty()  ? "; it takes none"
                         : format("; it takes {}", join(names, ", ")));
}

void ParseField(const Field& field, void* object, std::string_view text, std::string_view owner) {
  if (field.info.ignored) return;
  try {
    field.parse(object, text);
  } catch (const Error& error) {
    Throw(ErrorKind::kConfig, "{}: {} = '{}': {}", owner, field.info.name, Shortened(text),
          error.what());
  }
}

}  // namespace

void Set(std::span<const Field> fields, void* object, std::string_view name, std::string_view text,
         std::string_view owner) {
  ParseField(fields[IndexOf(fields, name, owner)], object, text, owner);
}

void Init(std::span<const Field> fields, void* object, const Kwargs& kwargs,
          std::string_view owner) {
  std::vector<bool> given(fields.size());
  for (const auto& [key, text] : kwargs) {
    if (IsHiddenKey(key)) continue;
    const size_t i = IndexOf(fields, key, owner);
    given[i] = true;
    ParseField(fields[i], object, text, owner);
  }
  for (size_t i = 0; i < fields.size(); ++i) {
    if (given[i] || fields[i].info.ignored) continue;
    if (!fields[i].set_default) {
      Throw(ErrorKind::kConfig, "{} needs the parameter '{}' ({})", owner, fields[i].info.name,
            Describe(fields[i].info));
    }
    fields[i].set_default(object);
  }
}

Kwargs ToKwargs(std::span<const Field> fields, const void* object) {
  Kwargs kwargs;
  for (const Field& field : fields) {
    if (!field.info.ignored) kwargs.emplace_back(field.info.name, field.print(object));
  }
  return kwargs;
}

std::vector<std::string> IgnoredKeys(std::span<const Field> fields, const Kwargs& kwargs) {
  std::vector<std::string> keys;
  for (const auto& [key, text] : kwargs) {
    for (const Field& field : fields) {
      if (field.info.ignored && field.info.name == key) keys.push_back(key);
    }
  }
  return keys;
}

}  // namespace params
}  // namespace mxtrain
