// SPDX-License-Identifier: Apache-2.0
#pragma once
// A configuration as a tree of values, each with its place. Independent of the YAML library;
// document.h does the reading.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "app/config/source_map.h"

namespace mxtrain::config {

struct Member;

// Largest absolute value of an integer; leaves room for sums in int64_t.
inline constexpr int64_t kMostInteger = 9'000'000'000'000'000'000;

struct Value {
  enum class Kind : uint8_t { kNull, kScalar, kList, kMap };

  Kind kind = Kind::kNull;
  Place place;
  std::string text;     // of a scalar
  bool quoted = false;  // a string, whatever it looks like
  std::vector<Value> list;
  std::vector<Member> members;  // in the order of the text

  static Value Scalar(std::string text, Place place = {}, bool quoted = false);
  static Value List(std::vector<Value> list, Place place = {});
  static Value Map(std::vector<Member> members, Place place = {});

  bool is_null() const { return kind == Kind::kNull; }
  bool is_scalar() const { return kind == Kind::kScalar; }
  bool is_list() const { return kind == Kind::kList; }
  bool is_map() const { return kind == Kind::kMap; }
  const Member* Find(std::string_view key) const;  // of a map; null when absent
  Member* Find(std::string_view key);
  const Value* Get(std::string_view key) const;  // its value; null when absent

  // Interpretations of a plain scalar; nothing if the text is something else. Integers may have a
  // decimal point only if followed by zeros.
  std::optional<bool> AsBool() const;
  std::optional<int64_t> AsInteger() const;
  std::optional<double> AsNumber() const;

  // "the list [1, 2]", "'abc'", "a map", "nothing": for messages.
  std::string Describe() const;
};

struct Member {
  std::string key;
  Place place;  // of the key
  Value value;
};

// Finds members of a map while it is filled, in constant time. The map must outlive it and be
// extended only with Add.
class MemberIndex {
 public:
  explicit MemberIndex(Value* map);
  Member* Find(const std::string& key);  // null when absent
  void Add(Member member);               // whose key is absent

 private:
  Value* map_;
  std::unordered_map<std::string, size_t> places_;
};

// A hint for a scalar that is not a number: "did you mean 0.01?" for 0,01; `otherwise` if there is
// none.
std::string HintFor(const Value& value, const std::string& otherwise);

// The tree as YAML that reads back to the same values, here and by parsers of YAML 1.1 and 1.2:
// 1e-4 becomes 1.0e-4, `off` is quoted. A text that looks like a number must be `quoted`, lest it
// is written as one: a name 010 as 10. Short lists and maps of scalars are written on one line.
std::string ToYaml(const Value& value);
// The same on one line: [1, 2], {a: 1}.
std::string ToFlow(const Value& value);

}  // namespace mxtrain::config
