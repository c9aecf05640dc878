// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of the reserved keys of layers and blocks: name, attrs, inputs. Internal to app/config.
#include <string>
#include <vector>

#include "app/config/net_expansion.h"

namespace mxtrain::config {

// Both take an evaluated value; false after an error.
bool ReadName(const Value& value, Expansion* expansion, std::string* name);
bool ReadAttrs(const Value& value, Expansion* expansion, Attrs* attrs);
// The names of layers and inputs, evaluated here, to be resolved in the scope. Empty for no value,
// and after an error.
std::vector<Reference> ReadReferences(Value value, int scope, Expansion* expansion);

}  // namespace mxtrain::config
