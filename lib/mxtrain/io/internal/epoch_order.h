// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order of examples in an epoch, and the part of each of several workers.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

struct OrderOptions {
  uint64_t seed = 0;
  bool shuffle = false;  // a new order each epoch, a function of (seed, epoch)
  int part_index = 0, num_parts = 1;
};

// Example numbers, in order. Parts are interleaved in the order of the whole source: part p gets
// positions p, p + num_parts, ... So parts are disjoint, cover the source, differ in size by at
// most one, and their batches b together form batch b of a single worker with num_parts times the
// batch size.
MXTRAIN_API std::vector<int64_t> EpochOrder(int64_t size, const OrderOptions& options,
                                            int64_t epoch);

// The same for an epoch in which class frequencies differ by at most one; `classes`: of each
// example. As many positions as examples; a class goes through its examples in random order, and
// starts over in another order when they run out. Classes without examples do not occur. Shuffled.
MXTRAIN_API std::vector<int64_t> BalancedOrder(const std::vector<int>& classes,
                                               const OrderOptions& options, int64_t epoch);

}  // namespace mxtrain::io
