// SPDX-License-Identifier: Apache-2.0
#include "app/config/evaluate.h"

#include <algorithm>

namespace mxtrain::config {

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

Names NamesOf(const std::map<std::string, Constant>& constants) {
  Names names;
  names.lookup = [&constants](std::string_view name) -> std::optional<Constant> {
    const auto found = constants.find(std::string(name));
    return found == constants.end() ? std::nullopt : std::optional(found->second);
  };
  names.known = [&constants] {
    std::vector<std::string> keys;
    for (const auto& [key, value] : constants) keys.push_back(key);
    return keys;
  };
  return names;
}

std::map<std::string, Constant> EvaluateVars(const Value& vars, Diagnostics* diagnostics) {
  std::map<std::string, Constant> values;
  if (vars.is_null()) return values;
  if (!vars.is_map()) {
    diagnostics->Error(vars.place,
                       format("vars: expected a map of named values, got {}", vars.Describe()));
    return values;
  }
  const Names names = NamesOf(values);
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
