// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/shards.h"

#include <algorithm>
#include <numeric>

namespace mxtrain {

std::vector<int> AssignOwners(std::span<const int64_t> bytes, int ranks) {
  std::vector<size_t> order(bytes.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return bytes[a] > bytes[b]; });
  std::vector<int> owners(bytes.size());
  std::vector<int64_t> taken(static_cast<size_t>(ranks));
  for (const size_t key : order) {
    const auto least = std::min_element(taken.begin(), taken.end());
    *least += bytes[key];
    owners[key] = static_cast<int>(least - taken.begin());
  }
  return owners;
}

}  // namespace mxtrain
