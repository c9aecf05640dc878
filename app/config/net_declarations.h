// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a net declares besides its layers: inputs and labels (`net.input`, `net.inputs`,
// `net.labels`) and Variables. Internal to app/config.
#include "app/config/net_expansion.h"

namespace mxtrain::config {

// Adds inputs and labels, with their names in scope 0.
void ReadInputs(Expansion* expansion);
// Adds a Variable; `params` is its map of keys.
void ExpandVariable(const Place& place, const Value& params, int scope, Expansion* expansion);

}  // namespace mxtrain::config
