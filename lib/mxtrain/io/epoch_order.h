#pragma once
// In which order an epoch goes through a source, and what of it one of several workers gets.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain::io {

struct OrderOptions {
  uint64_t seed = 0;
  bool shuffle = false;  // a new order each epoch: a function of (seed, epoch) alone
  int part_index = 0, num_parts = 1;
};

// Numbers of the examples, in order. Parts take turns along the one order of the whole source: part p gets places p, p + num_parts, ...
// So parts are disjoint, their union is the whole, they differ by at most one in size, and the parts' batches number b are together the
// batch number b of a single worker with a batch num_parts times as large.
MXTRAIN_API std::vector<int64_t> EpochOrder(int64_t size, const OrderOptions& options, int64_t epoch);

// The same for an epoch in which every class stands equally often, or one time more: `classes` holds that of each example. As many places as
// examples; a class takes its own in a random order, beginning again with another one when it has none left. Classes without examples have
// no place. Shuffled.
MXTRAIN_API std::vector<int64_t> BalancedOrder(const std::vector<int>& classes, const OrderOptions& options, int64_t epoch);

}  // namespace mxtrain::io
