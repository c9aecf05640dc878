// SPDX-License-Identifier: Apache-2.0
#pragma once
// Paths that lead to what is open already, or is no file.
#include <string>

#include "mxtrain/base/macros.h"

namespace mxtrain {

// Whether a path is that of a pipe or device, or names what a process has open: /dev/stdout,
// /dev/fd/3, /proc/self/fd/3, or a link to one of those, also if a file lies there. It is written
// to; a rename would replace the name itself, for the whole machine.
MXTRAIN_API bool IsStream(const std::string& path);

}  // namespace mxtrain
