#pragma once
// What the CPU's kernels stand on.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Of the library that is loaded: "2.6.0"; "" in a build without oneDNN.
MXTRAIN_API std::string OneDnnVersion();

}  // namespace mxtrain
