// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names and numbers of classes and columns in a line for people.
#include <string>
#include <vector>

#include "mxtrain/base/standardization.h"

namespace mxtrain::report {

// The name, printable, in quotes if it contains a comma.
std::string ListItem(const std::string& name);
// "column a", "columns a, b".
std::string ColumnsText(const std::vector<std::string>& columns);
// "mean=(1, 2) std=(3, 4)".
std::string UnitsText(const Standardization& units);

}  // namespace mxtrain::report
