// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/send_order.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mxtrain {
namespace {

using Order = std::vector<size_t>;

TEST_CASE("a link that keeps up with backward sends buckets as they are ready") {
  const std::vector<BucketTiming> buckets = {{100, 9, 3}, {110, 9, 2}, {120, 10, 1}, {130, 100, 0}};
  CHECK(SendOrder(buckets) == Order{0, 1, 2, 3});
}

TEST_CASE("what has gathered before a slow link leaves in the order in which it is needed") {
  // 0 occupies the link while 1 and 2 get ready, 2 while 3 does.
  const std::vector<BucketTiming> buckets = {
      {100, 30, 9}, {110, 30, 5}, {120, 30, 4}, {150, 30, 0}};
  CHECK(SendOrder(buckets) == Order{0, 2, 3, 1});
}

TEST_CASE("buckets that are ready at once leave in the order in which they are needed") {
  CHECK(SendOrder(std::vector<BucketTiming>{{7, 1, 4}, {7, 1, 0}, {7, 1, 3}}) == Order{1, 2, 0});
  CHECK(SendOrder({}).empty());
}

TEST_CASE("the link rests only while nothing is ready, and then takes what is needed first") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<BucketTiming> buckets(1 + random() % 12);
    std::vector<int> keys(buckets.size());
    std::iota(keys.begin(), keys.end(), 0);
    std::shuffle(keys.begin(), keys.end(), random);
    for (size_t i = 0; i < buckets.size(); ++i)
      buckets[i] = {static_cast<int64_t>(random() % 50), static_cast<int64_t>(random() % 10),
                    keys[i]};
    const Order order = SendOrder(buckets);
    Order sorted = order;
    std::sort(sorted.begin(), sorted.end());
    REQUIRE(sorted.size() == buckets.size());
    for (size_t i = 0; i < sorted.size(); ++i) REQUIRE(sorted[i] == i);
    int64_t free = 0;
    for (size_t i = 0; i < order.size(); ++i) {
      const BucketTiming& sent = buckets[order[i]];
      const int64_t begun = std::max(free, sent.ready);
      for (size_t later = i + 1; later < order.size(); ++later) {
        const BucketTiming& other = buckets[order[later]];
        // Nothing else was ready earlier, and of what was ready, nothing is needed earlier.
        REQUIRE(std::max(free, other.ready) >= begun);
        if (other.ready <= begun) REQUIRE(other.first_key > sent.first_key);
      }
      free = begun + sent.transfer;
    }
  }
}

}  // namespace
}  // namespace mxtrain
