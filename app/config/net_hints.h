// SPDX-License-Identifier: Apache-2.0
#pragma once
// Errors for items of `layers` that are no layers, with a guess at the intended line. Internal to
// app/config.
#include <string>

#include "app/config/net_expansion.h"

namespace mxtrain::config {

// Reports "{type: FullyConnected, num_hidden: 2}", as other tools write a layer. False for any
// other item.
bool ReportTypeKey(const Value& item, Expansion* expansion);
// Reports an item that is neither an operator nor one key with its parameters.
void ReportNoLayer(const Value& item, Expansion* expansion);
// Reports a name that is neither an operator nor a block.
void ReportUnknownOperator(const std::string& key, const Place& place, Expansion* expansion);

}  // namespace mxtrain::config
