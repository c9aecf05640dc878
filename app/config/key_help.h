#pragma once
// The table of keys for people: `mxtrain help train.optimizer`.
#include <string>
#include <vector>

namespace mxtrain::config {

// What a configuration may say at `topic`: a key or section by its path or the end of it ("train.optimizer", "transforms"), something that a key
// may name ("adam", "random_resized_crop"), what other tools call one of those ("augmentation"), or "keys" for everything. Sections list
// their keys, a key its kinds with their parameters. "" where there is none of that name.
std::string HelpOnKey(const std::string& topic);
// The words that HelpOnKey knows, for suggestions.
std::vector<std::string> KeyTopics();

}  // namespace mxtrain::config
