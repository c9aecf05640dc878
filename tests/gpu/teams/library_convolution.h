// SPDX-License-Identifier: Apache-2.0
#pragma once
// A library of convolutions for the host that takes cuDNN's place: the operator's cases run on
// everything that surrounds the library's calls on a GPU.
#include "mxtrain/operator/registry.h"

namespace mxtrain::test {

// Adds the kernels "library" and "fusing_library", which computes epilogues too, with the rank of
// cuDNN's.
void AddLibraryConvolution(OperatorRegistry& registry);

}  // namespace mxtrain::test
