// SPDX-License-Identifier: Apache-2.0
#pragma once
// One parameter of an operator, as text, for code that knows operators only by name.
#include <string>
#include <string_view>

#include "mxtrain/operator/property.h"

namespace mxtrain {

// "" when the operator has no such parameter.
inline std::string ParamOf(const OperatorProperty& op, std::string_view key) {
  for (const auto& [name, value] : op.GetParams()) {
    if (name == key) return value;
  }
  return "";
}

}  // namespace mxtrain
