// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which key an unknown one was meant to be.
#include <string>
#include <string_view>
#include <vector>

#include "app/config/schema.h"

namespace mxtrain::config {

// Whether another tool uses this name for the key.
bool IsAlso(const KeyInfo& info, std::string_view name);
// "keys: epochs, max_steps, ...".
std::string KeyList(const std::vector<Key>& keys);
// The help for a member that is not among the keys of the section at `path`: the key meant, here or
// elsewhere in the table, else the keys that there are. On the command line keys are named by their
// whole path: train.epochs for trian.epochs=2.
std::string Suggest(const std::vector<Key>& keys, const Member& member, const std::string& path,
                    bool command_line);

}  // namespace mxtrain::config
