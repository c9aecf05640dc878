// SPDX-License-Identifier: Apache-2.0
#pragma once
// The example of each row of each batch of an epoch. Private to io.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxtrain::io {

// Immutable once created.
struct EpochPlan {
  int64_t epoch = 0, batch_size = 1, batches = 0;
  std::vector<int64_t> order;  // this part's examples

  int64_t examples() const { return static_cast<int64_t>(order.size()); }
  // Rows of a batch that are examples; the others are padding.
  int64_t count(int64_t batch) const {
    return std::clamp<int64_t>(examples() - batch * batch_size, 0, batch_size);
  }
  // The example of a row, or the one `step` positions later; padding wraps around to the beginning.
  int64_t index(int64_t batch, int64_t row, int64_t step = 0) const {
    return order[static_cast<size_t>((batch * batch_size + row + step) % examples())];
  }
};

}  // namespace mxtrain::io
