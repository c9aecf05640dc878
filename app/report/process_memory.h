// SPDX-License-Identifier: Apache-2.0
#pragma once
// The memory of this process, in bytes, from /proc; 0 where that is not mounted.
#include <cstdint>

namespace mxtrain::report {

int64_t PeakMemoryBytes();
int64_t CurrentMemoryBytes();

}  // namespace mxtrain::report
