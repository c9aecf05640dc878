// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "mxtrain/base/format.h"

namespace mxtrain {

// Limit on the arrays that one operator reads or writes when a parameter gives their number. Their
// names are generated before the net is checked against it, so a number in a file must not be able
// to request any amount of memory.
inline constexpr int kMostArguments = 1 << 16;

// "arg0", "arg1", ...
inline std::vector<std::string> NumberedNames(const char* prefix, int count) {
  std::vector<std::string> names;
  for (int i = 0; i < count; ++i) names.push_back(format("{}{}", prefix, i));
  return names;
}

}  // namespace mxtrain
