// SPDX-License-Identifier: Apache-2.0
#include "app/config/value.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::config {
namespace {

constexpr size_t kOneLine = 100;  // maximum characters of a list or map written on one line

bool IsNullText(std::string_view text) {
  return text.empty() || text == "~" || text == "null" || text == "Null" || text == "NULL";
}

// Whether a parser of YAML 1.1 or 1.2 takes what is a text to us for something else: `off`, `y`,
// 0x10, 1_000, 1:30, 2024-01-31, .nan.
bool LooksTypedElsewhere(const std::string& text) {
  static constexpr std::string_view kWords[] = {"y",   "n",    "yes",  "no",    "on",
                                                "off", ".nan", ".inf", "+.inf", "-.inf"};
  if (std::find(std::begin(kWords), std::end(kWords), Lower(text)) != std::end(kWords)) return true;
  const size_t first = text.find_first_not_of("+-.");
  return first != std::string::npos && std::isdigit(static_cast<unsigned char>(text[first])) &&
         text.find_first_not_of("0123456789abcdefABCDEFxo_:.+-TtZ ") == std::string::npos;
}

// Whether YAML needs quotes to read the text as a string.
bool NeedsQuotes(const Value& scalar) {
  const std::string& text = scalar.text;
  const Value plain = Value::Scalar(text);
  const bool typed = IsNullText(text) || plain.AsBool() || plain.AsNumber();
  if (typed ? scalar.quoted : LooksTypedElsewhere(text)) return true;
  if (text.empty() || text.front() == ' ' || text.back() == ' ' || text.back() == ':') return true;
  if (std::string_view("!&*-?|>@`\"'%#{}[],:~=<").find(text.front()) != std::string_view::npos &&
      !plain.AsNumber())
    return true;
  return text.find_first_of("{}[],\n\t\"\\") != std::string::npos ||
         text.find(": ") != std::string::npos || text.find(" #") != std::string::npos;
}

// A number as YAML 1.1 reads one too: with digits on both sides of the point, which an exponent
// needs, a sign of the exponent, without leading zeros, and a point before inf. 1e-4 -> 1.0e-4,
// 010 -> 10.
std::string NumberText(const std::string& text) {
  const size_t begin = text.find_first_of("0123456789."), mantissa_end = text.find_first_of("eE");
  if (text.ends_with("inf")) return text.front() == '-' ? "-.inf" : ".inf";
  const std::string mantissa = text.substr(begin, mantissa_end - begin);
  const size_t point = std::min(mantissa.find('.'), mantissa.size());
  std::string whole = mantissa.substr(0, point),
              fraction = point < mantissa.size() ? mantissa.substr(point + 1) : "";
  whole.erase(0, std::min(whole.find_first_not_of('0'), whole.size()));
  std::string number = (text.front() == '-' ? "-" : "") + (whole.empty() ? "0" : whole);
  if (point < mantissa.size() || mantissa_end != std::string::npos)
    number += "." + (fraction.empty() ? "0" : fraction);
  if (mantissa_end == std::string::npos) return number;
  const std::string exponent = text.substr(mantissa_end + 1);
  return number + "e" + (std::isdigit(static_cast<unsigned char>(exponent[0])) ? "+" : "") +
         exponent;
}

std::string Quote(std::string_view text) {
  std::string quoted = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (c == '\n') {
      quoted += "\\n";
    } else if (c == '\t') {
      quoted += "\\t";
    } else {
      quoted += c;
    }
  }
  return quoted + '"';
}

std::string ScalarText(const Value& value) {
  if (value.is_null()) return "null";
  if (NeedsQuotes(value)) return Quote(value.text);
  return value.AsNumber() ? NumberText(value.text) : value.text;
}

std::string KeyText(const std::string& key) {
  return ScalarText(Value::Scalar(key, {}, true));
}

std::string Flow(const Value& value) {
  std::vector<std::string> parts;
  if (value.is_list()) {
    for (const Value& item : value.list) parts.push_back(Flow(item));
    return format("[{}]", join(parts, ", "));
  }
  if (value.is_map()) {
    for (const Member& m : value.members) parts.push_back(KeyText(m.key) + ": " + Flow(m.value));
    return format("{{{}}}", join(parts, ", "));
  }
  return ScalarText(value);
}

bool OnOneLine(const Value& value, size_t indent) {
  if (value.is_null() || value.is_scalar()) return true;
  if (value.list.empty() && value.members.empty()) return true;
  return indent > 0 && indent + Flow(value).size() <= kOneLine;
}

void Write(const Value& value, size_t indent, std::string* out) {
  const std::string margin(indent, ' ');
  auto child = [&](const Value& v, bool in_list) {
    if (OnOneLine(v, indent + 2)) {
      *out += " " + Flow(v) + "\n";
    } else if (in_list && v.is_map()) {
      // The first key follows the dash.
      std::string nested;
      Write(v, indent + 2, &nested);
      *out += " " + nested.substr(indent + 2);
    } else {
      *out += "\n";
      Write(v, indent + 2, out);
    }
  };
  for (const Value& item : value.list) {
    *out += margin + "-";
    child(item, true);
  }
  for (const Member& m : value.members) {
    *out += margin + KeyText(m.key) + ":";
    child(m.value, false);
  }
}

}  // namespace

Value Value::Scalar(std::string text, Place place, bool quoted) {
  Value v;
  v.kind = Kind::kScalar;
  v.text = std::move(text);
  v.place = place;
  v.quoted = quoted;
  return v;
}

Value Value::List(std::vector<Value> list, Place place) {
  Value v;
  v.kind = Kind::kList;
  v.list = std::move(list);
  v.place = place;
  return v;
}

Value Value::Map(std::vector<Member> members, Place place) {
  Value v;
  v.kind = Kind::kMap;
  v.members = std::move(members);
  v.place = place;
  return v;
}

const Member* Value::Find(std::string_view key) const {
  const auto found =
      std::find_if(members.begin(), members.end(), [&](const Member& m) { return m.key == key; });
  return found == members.end() ? nullptr : &*found;
}

Member* Value::Find(std::string_view key) {
  return const_cast<Member*>(std::as_const(*this).Find(key));
}

const Value* Value::Get(std::string_view key) const {
  const Member* member = Find(key);
  return member ? &member->value : nullptr;
}

MemberIndex::MemberIndex(Value* map) : map_(map) {
  for (size_t i = 0; i < map->members.size(); ++i) places_.emplace(map->members[i].key, i);
}

Member* MemberIndex::Find(const std::string& key) {
  const auto found = places_.find(key);
  return found == places_.end() ? nullptr : &map_->members[found->second];
}

void MemberIndex::Add(Member member) {
  places_.emplace(member.key, map_->members.size());
  map_->members.push_back(std::move(member));
}

std::optional<bool> Value::AsBool() const {
  if (!is_scalar() || quoted) return std::nullopt;
  if (text == "true" || text == "True" || text == "TRUE") return true;
  if (text == "false" || text == "False" || text == "FALSE") return false;
  return std::nullopt;
}

std::optional<int64_t> Value::AsInteger() const {
  const std::optional<double> number = AsNumber();
  if (!number || std::trunc(*number) != *number || std::abs(*number) > kMostInteger)
    return std::nullopt;
  int64_t integer = 0;
  const char* end = text.data() + text.size();
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  if (const auto [stop, status] = std::from_chars(begin, end, integer);
      status == std::errc() && stop == end)
    return integer;
  return static_cast<int64_t>(*number);
}

std::optional<double> Value::AsNumber() const {
  if (!is_scalar() || quoted || text.empty()) return std::nullopt;
  if (text == ".inf" || text == "inf") return HUGE_VAL;
  if (text == "-.inf" || text == "-inf") return -HUGE_VAL;
  // No "nan", no "0x1p3f".
  if (std::isalpha(static_cast<unsigned char>(text.back()))) return std::nullopt;
  double number = 0;
  const char* end = text.data() + text.size();
  const char* begin = text.data() + (text.starts_with('+') ? 1 : 0);
  const auto [stop, status] = std::from_chars(begin, end, number);
  return status == std::errc() && stop == end ? std::optional(number) : std::nullopt;
}

std::string Value::Describe() const {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kScalar:
      return (quoted ? "the text '" : "'") + Shortened(text) + "'";
    case Kind::kList:
      return list.size() <= 4 ? "the list " + Shortened(Flow(*this))
                              : format("a list of {}", list.size());
    case Kind::kMap:
      return "a map";
  }
  return "";
}

std::string HintFor(const Value& value, const std::string& otherwise) {
  const std::string& text = value.text;
  if (!value.is_scalar() || text.empty()) return otherwise;
  if (value.quoted)
    return Value::Scalar(text).AsNumber() || Value::Scalar(text).AsBool()
               ? format("did you mean {}, without quotes?", text)
               : otherwise;
  if (text == "None" || text == "nil") return "did you mean null?";
  const std::string but_last = text.substr(0, text.size() - 1);
  if (text.back() == '%') {
    if (const auto number = Value::Scalar(but_last).AsNumber())
      return format("did you mean {}?", *number / 100);
  }
  if (text.back() == ';' && Value::Scalar(but_last).AsNumber())
    return format("did you mean {}, without ';'?", but_last);
  const size_t comma = text.find(',');
  if (comma == std::string::npos) return otherwise;
  std::string joined = text, with_point = text;
  std::erase(joined, ',');
  with_point[comma] = '.';
  const bool thousands = text.size() - comma == 4 && text[0] != '0';  // 10,000
  const std::string meant = thousands ? joined : with_point;
  return Value::Scalar(meant).AsNumber() ? format("did you mean {}?", meant) : otherwise;
}

std::string ToFlow(const Value& value) {
  return Flow(value);
}

std::string ToYaml(const Value& value) {
  if (!value.is_list() && !value.is_map()) return Flow(value) + "\n";
  std::string out;
  Write(value, 0, &out);
  return out.empty() ? Flow(value) + "\n" : out;
}

}  // namespace mxtrain::config
