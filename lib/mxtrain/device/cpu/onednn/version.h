// SPDX-License-Identifier: Apache-2.0
#pragma once
// The library behind the CPU kernels.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Version of the loaded library: "2.6.0"; "" in a build without oneDNN.
MXTRAIN_API std::string OneDnnVersion();

}  // namespace mxtrain
