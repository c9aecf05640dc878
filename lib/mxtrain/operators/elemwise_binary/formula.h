// SPDX-License-Identifier: Apache-2.0
#pragma once
// The formula of each function of elemwise_binary.h, for the operator reference.
#include <map>
#include <string>
#include <string_view>

#include "mxtrain/base/format.h"

namespace mxtrain::elemwise_binary {

// The formula of a broadcasting operator ("broadcast_add") over two names: "lhs + rhs". Throws for
// an unknown one.
inline std::string Formula(std::string_view broadcast_name, std::string_view a,
                           std::string_view b) {
  static const std::map<std::string_view, const char*> formulas = {
      {"broadcast_add", "{0} + {1}"},
      {"broadcast_sub", "{0} - {1}"},
      {"broadcast_mul", "{0} * {1}"},
      {"broadcast_div", "{0} / {1} (integers: towards zero, and 0 if {1} is 0)"},
      {"broadcast_power", "{0} to the power of {1}"},
      {"broadcast_maximum", "the larger of {0} and {1}"},
      {"broadcast_minimum", "the smaller of {0} and {1}"},
      {"broadcast_mod", "the remainder of {0} / {1}, with the sign of {1}; 0 if {1} is 0"},
      {"broadcast_hypot", "sqrt({0}^2 + {1}^2)"},
      {"broadcast_equal", "1 if {0} == {1}, else 0"},
      {"broadcast_not_equal", "1 if {0} != {1}, else 0"},
      {"broadcast_greater", "1 if {0} > {1}, else 0"},
      {"broadcast_greater_equal", "1 if {0} >= {1}, else 0"},
      {"broadcast_lesser", "1 if {0} < {1}, else 0"},
      {"broadcast_lesser_equal", "1 if {0} <= {1}, else 0"},
      {"broadcast_logical_and", "1 if neither {0} nor {1} is 0, else 0"},
      {"broadcast_logical_or", "1 if {0} or {1} is not 0, else 0"},
      {"broadcast_logical_xor", "1 if exactly one of {0} and {1} is 0, else 0"}};
  return fmt::format(fmt::runtime(formulas.at(broadcast_name)), a, b);
}

}  // namespace mxtrain::elemwise_binary
