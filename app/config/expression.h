// SPDX-License-Identifier: Apache-2.0
#pragma once
// Expressions in ${...}: arithmetic over named values.
//
//   or, and, not   == != < <= > >=   + -   * / // %   unary -   a ? b : c
//   min(a, b, ...) max(a, b, ...) abs int floor ceil round
//   integers, numbers, true, false, 'text', names
//
// `/` gives a number, an integer if there is no remainder; `//` and `%` round down, as in Python.
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/config/value.h"

namespace mxtrain::config {

using Constant = std::variant<bool, int64_t, double, std::string>;

// The value of a name, or nothing when it is unknown.
using Lookup = std::function<std::optional<Constant>(std::string_view name)>;
struct Names {
  Lookup lookup;
  std::function<std::vector<std::string>()> known;  // for "did you mean"; empty: none
  // The help for a known name that has no value here; "" for other names.
  std::function<std::string(std::string_view name)> without_value = {};
};

// The number of bytes that expanding expressions, or `+` on texts, may add: otherwise a few
// doubling lines would fill memory.
inline constexpr size_t kMaxAddedText = 1024;

// Where an expression fails: `offset` bytes into its text.
struct ExpressionError {
  size_t offset = 0, length = 1;
  std::string message, help;
};

// The value of the text between the braces. Throws ExpressionError.
Constant Evaluate(std::string_view expression, const Names& names);
std::string ToText(const Constant& constant);  // "true", "64", "0.5", the text itself

// "${VAR:-default}" and names in capitals are environment variables; everything else in ${...} is
// an expression.
bool IsEnvironmentReference(std::string_view inside_braces);

// The scalar with its expressions replaced by their values. A scalar that is a single expression
// takes the type of its value; otherwise the parts are joined to a string, at most kMaxAddedText
// bytes longer. Other values are returned unchanged. Throws ExpressionError with an offset into
// `scalar.text`.
Value Expand(const Value& scalar, const Names& names);
bool HasExpression(const Value& value);

// Whether "${" at this place of a text is the end of "$${", which stands for "${" itself.
bool IsEscaped(std::string_view text, size_t open);
// A text that stands for itself: "$${" is written where "${" is meant, which Expand gives back.
std::string Escaped(std::string_view text);
// Every scalar in it.
void Escape(Value* value);

}  // namespace mxtrain::config
