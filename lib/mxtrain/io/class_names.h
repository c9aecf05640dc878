// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

// The lines of a text file, each the name of a class, in the order of their numbers. Throws kData
// for empty lines between and for names that occur twice.
MXTRAIN_API std::vector<std::string> ReadClassNames(const std::string& file);
// What ReadClassNames reads. Throws kData for a name that cannot be a line.
MXTRAIN_API std::string ClassNameLines(const std::vector<std::string>& names);

}  // namespace mxtrain::io
