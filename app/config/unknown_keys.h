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
// elsewhere in the table, else the keys that there are. For trian.epochs=2 on the command line that
// is train.epochs.
std::string Suggest(const std::vector<Key>& keys, const Member& member, const std::string& path);

}  // namespace mxtrain::config
