// SPDX-License-Identifier: Apache-2.0
#pragma once
// Access to arrays of any element type for host code that computes in float32.
#include <string>
#include <vector>

#include "mxtrain/ndarray/tblob.h"

namespace mxtrain {

// `blob`: plain, in host memory. Returned as is if float32, else converted into *room, which must
// outlive the result.
MXTRAIN_API TBlob AsFloat32(const TBlob& blob, std::vector<float>* room);

// Throws kBug for anything but a plain float32 array in host memory. `what` and `name` identify the
// reader: "metric", "accuracy".
MXTRAIN_API void RequireHostFloat32(const TBlob& blob, const char* what, const std::string& name);

}  // namespace mxtrain
