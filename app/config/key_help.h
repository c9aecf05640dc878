// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of keys for people: `mxtrain help train.optimizer`.
#include <string>
#include <vector>

namespace mxtrain::config {

// Help on `topic`; "" if there is none of that name. A topic is one of
//   - a key or section, by its path or the end of it ("train.optimizer", "transforms");
//   - a choice of a key ("adam", "random_resized_crop"), or its name in other tools
//     ("augmentation");
//   - a parameter of a choice ("lr", "train.optimizer.lr");
//   - "keys": everything.
//
// Sections list their keys, keys their choices with parameters.
std::string HelpOnKey(const std::string& topic);
// The topics of HelpOnKey, for suggestions.
std::vector<std::string> KeyTopics();

}  // namespace mxtrain::config
