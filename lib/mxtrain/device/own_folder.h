// SPDX-License-Identifier: Apache-2.0
#pragma once
// Backends that are libraries of their own stand beside this one.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// The path of a file in the folder of the library that contains this code; "" if there is none.
MXTRAIN_API std::string BesideThisLibrary(const std::string& file);

}  // namespace mxtrain
