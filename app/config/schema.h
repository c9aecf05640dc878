// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of all keys: path, type, default, range, help, and names in other tools. Loading, error
// messages, origins, the resolved configuration and the JSON schema are derived from it. The
// entries are in schema_table.cc and schema_kinds.cc.
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "app/config/config.h"
#include "app/config/diagnostic.h"

namespace mxtrain {
class OperatorRegistry;
}

namespace mxtrain::config {

// Description of one key, for help and schemas. `path` is the full path; "[]" is an element of a
// list.
struct KeyInfo {
  std::string path, name, type, default_text, range, help;
  bool required = false;
  std::vector<std::string> choices;
  std::vector<std::string> choice_help;  // one for each choice, or empty
  std::string word;                      // accepted instead of a number: "auto"
  std::vector<std::string> also;         // names in other tools
  std::string selector;  // the sibling key that decides whether this one is allowed, "name"
  std::vector<std::string> only_for;      // for these values of the selector; empty: always
  std::vector<std::string> idle_for;      // values with which it may stand and does nothing
  std::vector<std::string> optional_for;  // of a required key: values with which it is not
  // The help for one of these values, where it differs; else empty.
  std::vector<std::pair<std::string, std::string>> help_for;
  params::Bounds bounds = {-std::numeric_limits<double>::infinity(),
                           std::numeric_limits<double>::infinity()};  // of numbers
};

// One choice of a Named and its parameters, as described by the factory that creates it.
struct NamedKind {
  std::string name, help;
  std::vector<FieldInfo> params = {};  // the first may be written as the value itself: resize: 144
  std::vector<std::string> also = {};  // names in other tools
  // {"gamma", "factor"}: names of parameters in other tools.
  std::vector<std::pair<std::string, std::string>> params_also = {};
  // Throws kConfig as the factory would; empty: all parameters are valid.
  std::function<void(const Kwargs&)> check = {};
  // Replaces a word by the numbers that it stands for; empty: parameters stay as written.
  std::function<Kwargs(Kwargs)> resolve = {};
};

// Context of a value reader.
struct ReadContext {
  Diagnostics* diagnostics;
  const std::string& path;  // of the key
  const KeyInfo* info = nullptr;
  std::span<const NamedKind> kinds = {};  // of a Named
};

// Reports "KEY: expected WHAT, got VALUE" and returns false. No `help`: a hint from the key's.
bool Expected(const char* what, const Value& value, const ReadContext& context,
              std::string help = "");

// Each reads a value into a member; returns false after reporting an error.
bool Read(const Value& value, const ReadContext& context, bool* out);
bool Read(const Value& value, const ReadContext& context, int* out);
bool Read(const Value& value, const ReadContext& context, int64_t* out);
bool Read(const Value& value, const ReadContext& context, uint64_t* out);
bool Read(const Value& value, const ReadContext& context, double* out);
bool Read(const Value& value, const ReadContext& context, std::string* out);
bool Read(const Value& value, const ReadContext& context, Interval* out);
bool Read(const Value& value, const ReadContext& context, ByteCount* out);
bool Read(const Value& value, const ReadContext& context, ByteLimit* out);
bool Read(const Value& value, const ReadContext& context, Duration* out);
bool Read(const Value& value, const ReadContext& context, PatternNumbers* out);
bool Read(const Value& value, const ReadContext& context, PatternKinds* out);
bool Read(const Value& value, const ReadContext& context, ClassWeights* out);
bool Read(const Value& value, const ReadContext& context, NormalizedColumns* out);
bool Read(const Value& value, const ReadContext& context, Named* out);
bool Read(const Value& value, const ReadContext& context, Value* out);
bool Read(const Value& value, const ReadContext& context, std::vector<Column>* out);
// A value as the text that a Parameter struct reads (base/params.h), by FieldInfo::type; nothing if
// it has the wrong type.
std::optional<std::string> TextOfField(const Value& value, const FieldInfo& field);
// "an integer", "max, avg, sum".
std::string PhraseOfField(const FieldInfo& field);
// What to write instead of a value that TextOfField rejects: the nearest choice, else the help.
std::string HintForField(const Value& value, const FieldInfo& field);
// "(required, integer: number of output channels)".
std::string DescribeField(const FieldInfo& field);
bool ReadPath(const Value& value, const ReadContext& context, std::string* out);
// Throws kConfig for a text that a factory's parameter does not take.
using CheckParamText =
    std::function<void(std::string_view name, std::string_view text, std::string_view owner)>;
// Replaces the parameter of this name, or appends it.
void SetParam(const std::string& name, std::string text, Kwargs* params);
// A parameter that a factory describes, as text under its name in `out`.
bool ReadParam(const Value& value, const ReadContext& context, const FieldInfo& field,
               const CheckParamText& check, Kwargs* out);
template <typename T>
bool Read(const Value& value, const ReadContext& context, std::optional<T>* out) {
  return Read(value, context, &out->emplace());
}
template <typename T>
bool Read(const Value& value, const ReadContext& context, std::vector<T>* out) {
  out->clear();
  bool good = true;
  if (!value.is_list()) return Read(value, context, &out->emplace_back());
  for (const Value& item : value.list) good = Read(item, context, &out->emplace_back()) && good;
  return good;
}

// The inverse, for the resolved configuration.
Value Write(bool value);
Value Write(int value);
Value Write(int64_t value);
Value Write(uint64_t value);
Value Write(double value);
Value Write(const std::string& value);
Value Write(const Interval& value);
Value Write(const ByteCount& value);
Value Write(const ByteLimit& value);
Value Write(const Duration& value);
Value Write(const PatternNumbers& value);
Value Write(const PatternKinds& value);
Value Write(const ClassWeights& value);
Value Write(const NormalizedColumns& value);
Value Write(const Named& value);
Value Write(const Value& value);
Value Write(const std::vector<Column>& value);
// The text of a parameter as a value.
Value WriteParam(const FieldInfo& field, const std::string& text);
template <typename T>
Value Write(const std::optional<T>& value) {
  return value ? Write(*value) : Value{};
}
template <typename T>
Value Write(const std::vector<T>& value) {
  std::vector<Value> list;
  for (const T& item : value) list.push_back(Write(item));
  return Value::List(std::move(list));
}

template <typename T>
struct KeyType {
  static constexpr const char* text = "string";
};
template <>
struct KeyType<bool> {
  static constexpr const char* text = "boolean";
};
template <>
struct KeyType<int> {
  static constexpr const char* text = "integer";
};
template <>
struct KeyType<int64_t> {
  static constexpr const char* text = "integer";
};
template <>
struct KeyType<uint64_t> {
  static constexpr const char* text = "integer";
};
template <>
struct KeyType<double> {
  static constexpr const char* text = "number";
};
template <>
struct KeyType<Interval> {
  static constexpr const char* text = "interval";
};
template <>
struct KeyType<ByteCount> {
  static constexpr const char* text = "bytes";
};
template <>
struct KeyType<ByteLimit> : KeyType<ByteCount> {};
template <>
struct KeyType<Duration> {
  static constexpr const char* text = "duration";
};
template <>
struct KeyType<PatternNumbers> {
  static constexpr const char* text = "map of numbers";
};
template <>
struct KeyType<PatternKinds> {
  static constexpr const char* text = "map of kinds";
};
template <>
struct KeyType<ClassWeights> {
  static constexpr const char* text = "auto, list or map of numbers";
};
template <>
struct KeyType<NormalizedColumns> {
  static constexpr const char* text = "none, auto or map of columns";
};
template <>
struct KeyType<Named> {
  static constexpr const char* text = "name with parameters";
};
template <>
struct KeyType<Value> {
  static constexpr const char* text = "any";
};
template <>
struct KeyType<std::vector<Column>> {
  static constexpr const char* text = "map of columns";
};
template <typename T>
struct KeyType<std::optional<T>> : KeyType<T> {};
template <typename T>
struct KeyType<std::vector<T>> {
  static constexpr const char* text = "list";
};

// A key with its owner's type erased; `owner` is the struct that contains the member. A section has
// keys and a child, a leaf the other members.
struct Key {
  KeyInfo info;
  std::function<bool(void* owner, const Value& value, const ReadContext& context)> read;
  std::function<Value(const void* owner)> write;
  std::function<void(void* owner)> set_default;  // null where required
  std::function<void(void* owner, const Place& place)> set_place;
  std::vector<NamedKind> kinds;
  std::vector<Key> keys;
  std::function<void*(void* owner)> child;
  bool is_section() const { return static_cast<bool>(child); }
  // "(number, default 0.01: learning rate)". `selected`: for this value of the selector alone.
  std::string Describe(std::string_view selected = "") const;
};

// Builds the keys of one struct.
template <typename Owner>
class Section {
 public:
  template <typename T>
  class Row {
   public:
    Row(Key* key, T Owner::*member) : key_(key), member_(member) {}
    Row& Default(T value) {
      const Value text = Write(value);
      key_->info.default_text = text.is_null() || text.is_map() ? ""
                                : text.is_scalar()              ? text.text
                                : text.list.empty()             ? "[]"
                                                                : "";
      key_->set_default = [m = member_, value](void* owner) {
        static_cast<Owner*>(owner)->*m = value;
      };
      return *this;
    }
    // Left out of the resolved configuration where it has this value, its default: a key that is
    // new leaves the configurations of models as they were.
    Row& QuietDefault(T value) {
      Default(value);
      key_->write = [inner = key_->write, m = member_, value](const void* owner) {
        return static_cast<const Owner*>(owner)->*m == value ? Value() : inner(owner);
      };
      return *this;
    }
    Row& Required() {
      key_->info.required = true;
      return *this;
    }
    Row& IdleFor(std::vector<std::string> values) {
      key_->info.idle_for = std::move(values);
      return *this;
    }
    // The help for these values of the selector.
    Row& HelpFor(const std::vector<std::string>& values, const std::string& text) {
      for (const std::string& value : values) key_->info.help_for.emplace_back(value, text);
      return *this;
    }
    // After Required: but not for these values of the selector.
    Row& OptionalFor(std::vector<std::string> values) {
      key_->info.optional_for = std::move(values);
      return *this;
    }
    Row& Range(double low, double high = std::numeric_limits<double>::infinity()) {
      const params::Bounds bounds{low, high};
      key_->info.bounds = bounds;
      key_->info.range = params::RangeText(bounds, std::is_integral_v<T>);
      if (std::is_same_v<T, Duration>) key_->info.range += " s";
      key_->read = [inner = key_->read, m = member_, bounds](void* owner, const Value& value,
                                                             const ReadContext& context) {
        if (!inner(owner, value, context)) return false;
        bool within = true;
        const auto hold = [&](double number) { within = params::Hold(bounds, number); };
        const T& read = static_cast<Owner*>(owner)->*m;
        if constexpr (std::is_same_v<T, Duration>) {
          hold(static_cast<double>(read.seconds));
        } else {
          params::ForNumbers(read, hold);
        }
        if (within) return true;
        context.diagnostics->Error(value.place,
                                   fmt::format("{} = {} is out of range", context.path, value.text),
                                   fmt::format("{}: {}", context.info->range, context.info->help));
        return false;
      };
      return *this;
    }
    // Call after Range: accepts the word instead of a number, as `value`, which is outside the
    // range.
    Row& OrWord(const std::string& word, T value) {
      key_->info.word = word;
      key_->read = [inner = key_->read, m = member_, word, value](void* owner, const Value& given,
                                                                  const ReadContext& context) {
        if (!given.is_scalar() || given.text != word) return inner(owner, given, context);
        static_cast<Owner*>(owner)->*m = value;
        return true;
      };
      key_->write = [inner = key_->write, m = member_, word, value](const void* owner) {
        return static_cast<const Owner*>(owner)->*m == value ? Value::Scalar(word) : inner(owner);
      };
      return *this;
    }
    Row& Help(std::string text) {
      key_->info.help = std::move(text);
      return *this;
    }
    // `help`: one for each, or none.
    Row& Choices(std::vector<std::string> choices, std::vector<std::string> help = {}) {
      key_->info.choices = std::move(choices);
      key_->info.choice_help = std::move(help);
      return *this;
    }
    Row& Also(std::vector<std::string> names) {
      key_->info.also = std::move(names);
      return *this;
    }
    Row& OnlyFor(std::string selector, std::vector<std::string> values) {
      key_->info.selector = std::move(selector);
      key_->info.only_for = std::move(values);
      return *this;
    }
    Row& Kinds(std::vector<NamedKind> kinds) {
      key_->kinds = std::move(kinds);
      return *this;
    }
    // The text is a path, relative to the folder of the file that contains it.
    Row& IsPath() {
      key_->info.type = std::is_same_v<T, std::string> ? "path" : "list of paths";
      key_->read = [m = member_](void* owner, const Value& value, const ReadContext& context) {
        return ReadPaths(value, context, &(static_cast<Owner*>(owner)->*m));
      };
      return *this;
    }

   private:
    static bool ReadPaths(const Value& value, const ReadContext& context, std::string* out) {
      return ReadPath(value, context, out);
    }
    static bool ReadPaths(const Value& value, const ReadContext& context,
                          std::vector<std::string>* out) {
      if (!value.is_list()) return ReadPath(value, context, &out->emplace_back());
      bool good = true;
      for (const Value& item : value.list)
        good = ReadPath(item, context, &out->emplace_back()) && good;
      return good;
    }
    Key* key_;
    T Owner::*member_;
  };

  template <typename T>
  Row<T> Add(std::string name, T Owner::*member) {
    Key& key = keys_.emplace_back();
    key.info.name = std::move(name);
    key.info.type = KeyType<T>::text;
    key.read = [member](void* owner, const Value& value, const ReadContext& context) {
      return Read(value, context, &(static_cast<Owner*>(owner)->*member));
    };
    key.write = [member](const void* owner) {
      return Write(static_cast<const Owner*>(owner)->*member);
    };
    return Row<T>(&key, member);
  }

  // A parameter of what a factory creates, kept as text among `member`. The key is described by
  // the field; returns it for what the field does not say.
  // `quiet`: skipped in the resolved configuration where it is not given, as by QuietDefault.
  KeyInfo& AddParam(const FieldInfo& field, Kwargs Owner::*member, CheckParamText check,
                    bool quiet = false) {
    Key& key = keys_.emplace_back();
    key.info.name = field.name;
    key.info.type = field.choices.empty() ? field.type : "string";
    key.info.choices = field.choices;
    key.info.range = field.range;
    key.info.help = field.help;
    key.info.required = field.required;
    key.read = [member, field, check = std::move(check)](void* owner, const Value& value,
                                                         const ReadContext& context) {
      return ReadParam(value, context, field, check, &(static_cast<Owner*>(owner)->*member));
    };
    key.write = [member, field](const void* owner) {
      for (const auto& [name, text] : static_cast<const Owner*>(owner)->*member) {
        if (name == field.name) return WriteParam(field, text);
      }
      return Value{};
    };
    if (field.required) return key.info;
    const Value text = WriteParam(field, field.default_text);
    key.info.default_text = text.is_list() ? (text.list.empty() ? "[]" : "") : text.text;
    key.set_default = [member, field, quiet](void* owner) {
      if (!quiet) SetParam(field.name, field.default_text, &(static_cast<Owner*>(owner)->*member));
    };
    return key.info;
  }

  // A subsection. `selector` names its key whose value may replace the section: optimizer: sgd. A
  // required section must be given; an optional one has defaults, and then none of its own keys is
  // required.
  template <typename Child>
  void Below(std::string name, Child Owner::*member, Section<Child> section, std::string help,
             bool required, std::string selector = "", std::vector<std::string> also = {}) {
    Key& key = keys_.emplace_back();
    key.info.also = std::move(also);
    key.info.required = required;
    key.info.name = std::move(name);
    key.info.type = "map";
    key.info.help = std::move(help);
    key.info.selector = std::move(selector);
    key.keys = section.Take();
    key.child = [member](void* owner) -> void* { return &(static_cast<Owner*>(owner)->*member); };
    if constexpr (requires(Child child) { child.place; }) {
      key.set_place = [member](void* owner, const Place& place) {
        (static_cast<Owner*>(owner)->*member).place = place;
      };
    }
  }
  // A key that is handled before the table is used (document.h).
  void Describe(std::string name, std::string type, std::string help) {
    Key& key = keys_.emplace_back();
    key.info.name = std::move(name);
    key.info.type = std::move(type);
    key.info.help = std::move(help);
  }
  std::vector<Key> Take() { return std::move(keys_); }

 private:
  std::vector<Key> keys_;
};

// The table: the keys of Config.
const std::vector<Key>& Schema();
// The selector key of the section at this path ("train.weights": "file"); "" if there is no such
// section or key.
std::string ShortFormOf(std::string_view path);

// Every leaf and section with its full path, in table order.
std::vector<KeyInfo> DescribeKeys();
// JSON Schema (draft 2020-12) of a configuration file, for editors, with the parameters of these
// operators.
std::string JsonSchema(const OperatorRegistry& operators);

}  // namespace mxtrain::config
