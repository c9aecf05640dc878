// SPDX-License-Identifier: Apache-2.0
#pragma once
// Loops without a counter at run time.
#include "mxtrain/base/macros.h"

namespace mxtrain {

// f(0), ..., f(kCount - 1), written out: an array that is indexed in a loop which is not would be
// in a GPU's memory, not in registers.
template <int kCount, typename F>
MXTRAIN_HD inline void ForPack(const F& f) {
  if constexpr (kCount > 1) ForPack<kCount - 1>(f);
  f(kCount - 1);
}

}  // namespace mxtrain
