#pragma once
// How host code that computes in float32 reads arrays of any element type.
#include <string>
#include <vector>

#include "mxtrain/ndarray/tblob.h"

namespace mxtrain {

// `blob`: plain, in host memory. Itself where it holds float32, else its elements converted into *room, which must outlive what is
// returned.
MXTRAIN_API TBlob AsFloat32(const TBlob& blob, std::vector<float>* room);

// Throws kBug for anything but a plain float32 array in host memory. What reads it: "metric", "accuracy".
MXTRAIN_API void RequireHostFloat32(const TBlob& blob, const char* what, const std::string& name);

}  // namespace mxtrain
