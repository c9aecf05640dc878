// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of classes in a line for people, separated by commas.
#include <string>

namespace mxtrain::report {

// The name, printable, in quotes if it contains a comma.
std::string ListItem(const std::string& name);

}  // namespace mxtrain::report
