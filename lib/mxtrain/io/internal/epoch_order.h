// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of examples in an epoch.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

struct OrderOptions {
  uint64_t seed = 0;
  bool shuffle = false;  // a new order each epoch, a function of (seed, epoch)
};

// Example numbers, in order, of the whole source; EpochPlan divides them among parts.
MXTRAIN_API std::vector<int64_t> EpochOrder(int64_t size, const OrderOptions& options,
                                            int64_t epoch);

// The same for an epoch in which class frequencies differ by at most one; `classes`: of each
// example. As many positions as examples; a class goes through its examples in random order, and
// starts over in another order when they run out. Classes without examples do not occur. Shuffled.
MXTRAIN_API std::vector<int64_t> BalancedOrder(const std::vector<int>& classes,
                                               const OrderOptions& options, int64_t epoch);

}  // namespace mxtrain::io
