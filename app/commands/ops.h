// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference of one operator, as `mxtrain ops NAME` prints it.
#include <string>

#include "mxtrain/base/json.h"
#include "mxtrain/operator/registry.h"

namespace mxtrain::commands {

// Both throw kConfig for a name that the registry does not have.
std::string TextOfOperator(const OperatorRegistry& registry, const std::string& wanted);
Json JsonOfOperator(const OperatorRegistry& registry, const std::string& wanted);

}  // namespace mxtrain::commands
