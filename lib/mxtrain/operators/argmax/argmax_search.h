// SPDX-License-Identifier: Apache-2.0
#pragma once
// The search on the CPU: vectorized along the rows of columns that lie side by side, and within
// columns that are contiguous.
#include "mxtrain/operators/argmax/argmax.h"

namespace mxtrain::argmax {

// Puts the result of every slice. F: Largest or Smallest; T: a floating type.
template <typename F, typename T>
void SearchOnCpu(const T* x, const Results<T>& results);

}  // namespace mxtrain::argmax
