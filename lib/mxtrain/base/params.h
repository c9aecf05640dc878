// SPDX-License-Identifier: Apache-2.0
#pragma once
// Typed parameters, declared once. One declaration gives parsing, defaults, range checks, error
// messages and the reference printed by `mxtrain ops`.
//
//   struct PoolingParam : Parameter<PoolingParam> {
//     TShape kernel; int pool_type; bool global_pool;
//     static void Declare(Fields<PoolingParam>& f) {
//       f.Add("kernel", &PoolingParam::kernel).Default(TShape{}).Help("window, (h, w)");
//       f.Add("pool_type", &PoolingParam::pool_type)
//           .Enum({{"max", kMax}, {"avg", kAvg}})
//           .Default(kMax)
//           .Help("...");
//       f.Add("num_filter", &P::num_filter).Required().Range(1, INT_MAX).Help("output channels");
//       f.Ignored("workspace", "MXNet's scratch size");
//     }
//   };
//   PoolingParam p; p.Init(kwargs, "Pooling");
//
// Field types: bool, int, int64_t, uint32_t, float, double, std::string, TShape (as a tuple; a
// single number is a tuple of one), DType, std::vector<double>, std::vector<std::string>,
// std::optional<T> of scalars ("None" = unset), int with Enum. Numbers are finite and within
// float32, in which kernels compute, unless a field takes AnyNumber. The text syntax is MXNet's
// (reference for users: `mxtrain ops NAME`). Attributes (IsHiddenKey) are skipped.
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/shape.h"

namespace mxtrain {

// Keyword arguments in the order given.
using Kwargs = std::vector<std::pair<std::string, std::string>>;

// Description of one parameter, for users and for schemas.
struct FieldInfo {
  std::string name, type;    // type: "int", "tuple", "max | avg | sum"
  std::string default_text;  // as MXNet prints it; "" when required
  std::string range, help;   // range: ">= 1", "0 .. 1", "" when free
  bool required = false;
  bool ignored = false;  // accepted for MXNet's files, without effect here
  std::vector<std::string> choices;
  bool internal = false;  // set by the program; users are not offered it
};

// "__lr_mult__": such a key is an attribute, never a parameter.
MXTRAIN_API bool IsHiddenKey(std::string_view key);

namespace params {
// Parsers throw Error(kConfig) with a phrase that says what is expected: "expected an integer".
// They do not name the parameter.
MXTRAIN_API void Parse(std::string_view text, bool* value);
MXTRAIN_API void Parse(std::string_view text, int* value);
MXTRAIN_API void Parse(std::string_view text, int64_t* value);
MXTRAIN_API void Parse(std::string_view text, uint32_t* value);
MXTRAIN_API void Parse(std::string_view text, float* value);
MXTRAIN_API void Parse(std::string_view text, double* value);
MXTRAIN_API void Parse(std::string_view text, std::string* value);
MXTRAIN_API void Parse(std::string_view text, TShape* value);
MXTRAIN_API void Parse(std::string_view text, DType* value);
MXTRAIN_API void Parse(std::string_view text, std::vector<double>* value);
MXTRAIN_API void Parse(std::string_view text, std::vector<std::string>* value);
MXTRAIN_API std::string Print(bool value);  // "True" / "False"
MXTRAIN_API std::string Print(int value);
MXTRAIN_API std::string Print(int64_t value);
MXTRAIN_API std::string Print(uint32_t value);
MXTRAIN_API std::string Print(float value);  // shortest text that reads back to the same number
MXTRAIN_API std::string Print(double value);
MXTRAIN_API std::string Print(const std::string& value);
MXTRAIN_API std::string Print(const TShape& value);
MXTRAIN_API std::string Print(DType value);
MXTRAIN_API std::string Print(const std::vector<double>& value);
MXTRAIN_API std::string Print(const std::vector<std::string>& value);
template <typename T>
void Parse(std::string_view text, std::optional<T>* value) {
  if (text == "None" || text == "none") {
    value->reset();
  } else {
    value->emplace();
    Parse(text, &**value);
  }
}
template <typename T>
std::string Print(const std::optional<T>& value) {
  return value ? Print(*value) : "None";
}

template <typename T>
struct TypeName {
  static constexpr const char* text = "string";
};
template <>
struct TypeName<bool> {
  static constexpr const char* text = "boolean";
};
template <>
struct TypeName<int> {
  static constexpr const char* text = "integer";
};
template <>
struct TypeName<int64_t> {
  static constexpr const char* text = "integer";
};
template <>
struct TypeName<uint32_t> : TypeName<int64_t> {};
template <>
struct TypeName<float> {
  static constexpr const char* text = "number";
};
template <>
struct TypeName<double> {
  static constexpr const char* text = "number";
};
template <>
struct TypeName<TShape> {
  static constexpr const char* text = "tuple";
};
template <>
struct TypeName<DType> {
  static constexpr const char* text = "element type";
};
template <>
struct TypeName<std::vector<double>> {
  static constexpr const char* text = "list of numbers";
};
template <>
struct TypeName<std::vector<std::string>> {
  static constexpr const char* text = "list";
};
template <typename T>
struct TypeName<std::optional<T>> : TypeName<T> {};

// One field, independent of its owner's type. `object` is the parameter struct.
struct Field {
  FieldInfo info;
  // Checks range and choices; null when ignored.
  std::function<void(void* object, std::string_view text)> parse;
  std::function<std::string(const void* object)> print;
  std::function<void(void* object)> set_default;  // null when required
};

// Sets every field of `object` from kwargs and defaults. Throws one kConfig error: "OWNER has no
// parameter 'x'; did you mean 'y'?", "OWNER needs the parameter 'num_filter' (integer >= 1: number
// of output channels)", "OWNER: stride = 'a': expected ...".
MXTRAIN_API void Init(std::span<const Field> fields, void* object, const Kwargs& kwargs,
                      std::string_view owner);
// Every parameter with its value, except ignored ones.
MXTRAIN_API Kwargs ToKwargs(std::span<const Field> fields, const void* object);
// Keys of `kwargs` that are accepted without effect.
MXTRAIN_API std::vector<std::string> IgnoredKeys(std::span<const Field> fields,
                                                 const Kwargs& kwargs);
// Bounds of a number, inclusive unless one is excluded. What is 0 in float32 is not above 0.
struct Bounds {
  double low, high;
  bool above = false, below = false;  // whether low, high is excluded
};
MXTRAIN_API bool Hold(const Bounds& bounds, double value);
MXTRAIN_API std::string RangeText(const Bounds& bounds, bool integer);
// Whether the number is finite and not too large for float32.
MXTRAIN_API bool FitsFloat32(double value);
// Parses one parameter into `object`. Throws what Init throws for its text.
MXTRAIN_API void Set(std::span<const Field> fields, void* object, std::string_view name,
                     std::string_view text, std::string_view owner);
[[noreturn]] MXTRAIN_API void ThrowTooLarge(std::string_view text);
[[noreturn]] MXTRAIN_API void ThrowOutOfRange(const std::string& value, const std::string& range);
[[noreturn]] MXTRAIN_API void ThrowNoChoice(std::string_view text,
                                            const std::vector<std::string>& choices);

// Calls `visit` with each number of a field's value; an unset one has none.
template <typename V, typename F>
void ForNumbers(const V& value, const F& visit) {
  if constexpr (std::is_arithmetic_v<V>) {
    visit(static_cast<double>(value));
  } else if constexpr (std::is_same_v<V, std::vector<double>>) {
    for (const double number : value) visit(number);
  } else if constexpr (requires { value.has_value(); }) {
    if (value) ForNumbers(*value, visit);
  }
}
}  // namespace params

template <typename P>
class Fields {
 public:
  template <typename T>
  class Builder {
   public:
    Builder(params::Field* field, T P::*member) : field_(field), member_(member) {}
    Builder& Required() {
      field_->info.required = true;
      return *this;
    }
    Builder& Default(T value) {
      field_->info.default_text = names_ ? NameOfChoice(*names_, value) : params::Print(value);
      field_->set_default = [m = member_, value](void* object) {
        static_cast<P*>(object)->*m = value;
      };
      return *this;
    }
    Builder& Help(std::string text) {
      field_->info.help = std::move(text);
      return *this;
    }
    // Inclusive bounds, for numbers; for lists, of each.
    Builder& Range(double low, double high = kInfinity) { return Within({low, high}); }
    Builder& RangeAbove(double low, double high = kInfinity) {
      return Within({low, high, /*above=*/true});
    }
    Builder& RangeBelow(double low, double high) {
      return Within({low, high, /*above=*/false, /*below=*/true});
    }
    // Infinity and NaN too: an operand of arithmetic.
    Builder& AnyNumber() {
      field_->parse = [m = member_](void* object, std::string_view text) {
        params::Parse(text, &(static_cast<P*>(object)->*m));
      };
      return *this;
    }
    // The text is a path, of type "path".
    Builder& IsPath() {
      field_->info.type = "path";
      return *this;
    }
    Builder& Internal() {
      field_->info.internal = true;
      return *this;
    }
    // Names for the values of an int field.
    Builder& Enum(std::vector<std::pair<std::string, int>> names) requires std::is_same_v<T, int> ||
        std::is_same_v<T, std::optional<int>> {
      names_ = std::make_shared<Names>(std::move(names));
      for (const auto& [name, value] : *names_) field_->info.choices.push_back(name);
      field_->info.type.clear();
      for (const std::string& choice : field_->info.choices)
        field_->info.type += (field_->info.type.empty() ? "" : " | ") + choice;
      field_->parse = [names = names_, m = member_, choices = field_->info.choices](
                          void* object, std::string_view text) {
        if constexpr (!std::is_same_v<T, int>) {
          if (text == "None") {
            (static_cast<P*>(object)->*m).reset();
            return;
          }
        }
        for (const auto& [name, value] : *names) {
          if (name == text) {
            static_cast<P*>(object)->*m = value;
            return;
          }
        }
        params::ThrowNoChoice(text, choices);
      };
      field_->print = [names = names_, m = member_](const void* object) {
        return NameOfChoice(*names, static_cast<const P*>(object)->*m);
      };
      return *this;
    }

   private:
    using Names = std::vector<std::pair<std::string, int>>;
    static constexpr double kInfinity = std::numeric_limits<double>::infinity();
    Builder& Within(const params::Bounds& bounds) {
      field_->info.range = params::RangeText(bounds, std::is_integral_v<T>);
      field_->parse = [inner = field_->parse, m = member_, bounds, range = field_->info.range](
                          void* object, std::string_view text) {
        inner(object, text);
        params::ForNumbers(static_cast<P*>(object)->*m, [&](double number) {
          if (!params::Hold(bounds, number)) params::ThrowOutOfRange(std::string(text), range);
        });
      };
      return *this;
    }
    template <typename V>
    static std::string NameOfChoice(const Names& names, const V& value) {
      if constexpr (std::is_same_v<V, int>) {
        for (const auto& [name, number] : names) {
          if (number == value) return name;
        }
        return "?";
      } else if constexpr (std::is_same_v<V, std::optional<int>>) {
        return value ? NameOfChoice(names, *value) : "None";
      } else {
        return "";
      }
    }
    params::Field* field_;
    T P::*member_;
    std::shared_ptr<Names> names_;
  };

  // The member may belong to a base class of P.
  template <typename T, typename B>
  Builder<T> Add(std::string name, T B::*base_member) {
    T P::*member = base_member;
    params::Field& field = fields_.emplace_back();
    field.info.name = std::move(name);
    field.info.type = params::TypeName<T>::text;
    field.parse = [member](void* object, std::string_view text) {
      params::Parse(text, &(static_cast<P*>(object)->*member));
      params::ForNumbers(static_cast<P*>(object)->*member, [text](double number) {
        if (!params::FitsFloat32(number)) params::ThrowTooLarge(text);
      });
    };
    field.print = [member](const void* object) {
      return params::Print(static_cast<const P*>(object)->*member);
    };
    return Builder<T>(&field, member);
  }
  // A key of MXNet's files without a meaning here.
  void Ignored(std::string name, std::string help) {
    params::Field& field = fields_.emplace_back();
    field.info.name = std::move(name);
    field.info.help = std::move(help);
    field.info.ignored = true;
  }
  std::vector<params::Field> Take() { return std::move(fields_); }

 private:
  std::vector<params::Field> fields_;
};

template <typename P>
struct Parameter {
  void Init(const Kwargs& kwargs, std::string_view owner) {
    params::Init(Schema(), static_cast<P*>(this), kwargs, owner);
  }
  Kwargs ToKwargs() const { return params::ToKwargs(Schema(), static_cast<const P*>(this)); }
  static std::vector<FieldInfo> Describe() {
    std::vector<FieldInfo> infos;
    for (const params::Field& field : Schema()) infos.push_back(field.info);
    return infos;
  }
  static std::vector<std::string> IgnoredKeys(const Kwargs& kwargs) {
    return params::IgnoredKeys(Schema(), kwargs);
  }
  // Throws as Init does for this text of one parameter.
  static void Check(std::string_view name, std::string_view text, std::string_view owner) {
    P scratch;
    params::Set(Schema(), &scratch, name, text, owner);
  }

 private:
  static std::span<const params::Field> Schema() {
    static const std::vector<params::Field> schema = [] {
      Fields<P> fields;
      P::Declare(fields);
      return fields.Take();
    }();
    return schema;
  }
};

// For objects without parameters.
struct NoParam : Parameter<NoParam> {
  static void Declare(Fields<NoParam>&) {}
};

}  // namespace mxtrain
