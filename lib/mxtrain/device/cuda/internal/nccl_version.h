// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>

namespace mxtrain::cuda {

// "2.28.9", or why there is none. Loads the library to find out.
std::string NcclVersion();

}  // namespace mxtrain::cuda
