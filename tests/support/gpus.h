// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mxtrain/device/context.h"

namespace mxtrain::test {

// The GPU of tests that need one.
inline const Context kGpu = Context::gpu(0);

}  // namespace mxtrain::test
