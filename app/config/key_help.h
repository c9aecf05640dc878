// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of keys for people: `mxtrain help train.optimizer`.
#include <string>
#include <vector>

namespace mxtrain::config {

// Help on `topic`: a key or section by its path or the end of it ("train.optimizer", "transforms"),
// a choice of a key
// ("adam", "random_resized_crop"), a name of one of those in other tools ("augmentation"), a
// parameter of a choice ("lr", "train.optimizer.lr"), or "keys" for everything. Sections list their
// keys, keys their kinds with parameters. "" if there is none of that name.
std::string HelpOnKey(const std::string& topic);
// The topics of HelpOnKey, for suggestions.
std::vector<std::string> KeyTopics();

}  // namespace mxtrain::config
