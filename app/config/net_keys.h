// SPDX-License-Identifier: Apache-2.0
#pragma once
// Readers of the reserved keys of layers, blocks and variables: name, attrs, lr_mult and wd_mult,
// inputs. Internal to app/config.
#include <string>
#include <vector>

#include "app/config/net_expansion.h"

namespace mxtrain::config {

// These take an evaluated value; false after an error.
bool ReadName(const Value& value, Expansion* expansion, std::string* name);
bool ReadAttrs(const Value& value, Expansion* expansion, Attrs* attrs);
// lr_mult or wd_mult: the member becomes an attribute.
bool ReadMultiplier(const Member& member, Expansion* expansion, Attrs* attrs);
// The names of layers and inputs, evaluated here, to be resolved in the scope. Empty for no value,
// and after an error.
std::vector<Reference> ReadReferences(Value value, int scope, Expansion* expansion);

}  // namespace mxtrain::config
