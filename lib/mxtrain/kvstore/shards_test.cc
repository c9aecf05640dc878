// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/shards.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mxtrain {
namespace {

TEST_CASE("keys are shared out evenly by their bytes") {
  CHECK(AssignOwners(std::vector<int64_t>{4, 4, 4, 4}, 2) == std::vector{0, 1, 0, 1});
  CHECK(AssignOwners(std::vector<int64_t>{1, 9, 2}, 2) == std::vector{1, 0, 1});
  CHECK(AssignOwners(std::vector<int64_t>{5}, 3) == std::vector{0});
  CHECK(AssignOwners({}, 3).empty());
  std::mt19937 random(1);
  for (int ranks : {1, 2, 3, 8}) {
    std::vector<int64_t> bytes(100);
    for (int64_t& size : bytes) size = 1 + static_cast<int64_t>(random() % 1000);
    const std::vector<int> owners = AssignOwners(bytes, ranks);
    std::vector<int64_t> taken(static_cast<size_t>(ranks));
    for (size_t k = 0; k < bytes.size(); ++k) taken.at(static_cast<size_t>(owners[k])) += bytes[k];
    const int64_t all = std::accumulate(bytes.begin(), bytes.end(), int64_t{0});
    // No rank has more than its part and one key.
    CHECK(*std::max_element(taken.begin(), taken.end()) <= all / ranks + 1000);
  }
}

}  // namespace
}  // namespace mxtrain
