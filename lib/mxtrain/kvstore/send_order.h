// SPDX-License-Identifier: Apache-2.0
#pragma once
// The order in which buckets of gradients travel between ranks.
#include <cstdint>
#include <span>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

struct BucketTiming {
  int64_t ready = 0;     // when backward completes it
  int64_t transfer = 0;  // how long it takes the link
  int first_key = 0;     // the next forward pass needs the lowest first
};

// The indices of the buckets in the order of sending.
//
// Whenever the link is free, what is needed first leaves, of what is ready (as in Y. Peng et al.,
// "A Generic Communication Scheduler for Distributed DNN Training Acceleration", 2019). A link that
// keeps up with backward sends them as they come. On a slower one the last layers' gradients wait
// and travel while the first layers compute the next forward pass.
MXTRAIN_API std::vector<size_t> SendOrder(std::span<const BucketTiming> buckets);

}  // namespace mxtrain
