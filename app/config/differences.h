// SPDX-License-Identifier: Apache-2.0
#pragma once
// The differences between two configurations.
#include <string>
#include <utility>
#include <vector>

#include "app/config/document.h"

namespace mxtrain::config {

// Text by name, in the order of their source.
using Facts = std::vector<std::pair<std::string, std::string>>;

struct Difference {
  std::string name, left, right;  // "" if that side lacks the name
};

// "train.optimizer.lr" and its value, for everything in a configuration; lists of scalars are one
// value.
Facts Flatten(const Value& root);
// The same for a YAML text written by the program; `name` is used in errors.
Facts FlattenText(const std::string& name, const std::string& yaml);
// All names of either side, those of `left` first; equal ones only with `all`.
std::vector<Difference> Compare(const Facts& left, const Facts& right, bool all = false);

}  // namespace mxtrain::config
