#pragma once
// What two configurations say differently.
#include <string>
#include <utility>
#include <vector>

#include "app/config/document.h"

namespace mxtrain::config {

// Text by name, in the order of their source.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Difference {
  std::string name, left, right;  // "" where a side has none of that name
};

// "train.optimizer.lr" and its value, for everything in a configuration; lists of scalars are one value.
Facts Flatten(const Value& root);
// The same of a text in YAML that the program wrote; `name` stands for it in errors.
Facts FlattenText(const std::string& name, const std::string& yaml);
// Every name of either, those of `left` first; with `all` also those on which they agree.
std::vector<Difference> Compare(const Facts& left, const Facts& right, bool all = false);

}  // namespace mxtrain::config
