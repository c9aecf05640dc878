// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/send_order.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace mxtrain {

std::vector<size_t> SendOrder(std::span<const BucketTiming> buckets) {
  std::vector<size_t> left(buckets.size()), order;
  std::iota(left.begin(), left.end(), size_t{0});
  std::sort(left.begin(), left.end(),
            [&](size_t a, size_t b) { return buckets[a].first_key < buckets[b].first_key; });
  int64_t now = std::numeric_limits<int64_t>::min();
  while (!left.empty()) {
    auto next = std::find_if(left.begin(), left.end(),
                             [&](size_t bucket) { return buckets[bucket].ready <= now; });
    if (next == left.end()) {
      next = std::min_element(left.begin(), left.end(), [&](size_t a, size_t b) {
        return buckets[a].ready < buckets[b].ready;
      });
      now = buckets[*next].ready;
    }
    now += buckets[*next].transfer;
    order.push_back(*next);
    left.erase(next);
  }
  return order;
}

}  // namespace mxtrain
