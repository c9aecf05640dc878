// SPDX-License-Identifier: Apache-2.0
#pragma once
// The example of each row of each batch of an epoch. Private to io.
//
// Several parts, each with its own iterator, share the order of the whole source: batch k of part p
// is rows [p * batch_size, (p + 1) * batch_size) of batch k of a single iterator with batches of
// parts * batch_size, padding included. So the parts are disjoint and cover what the single
// iterator does; in the last batch the first parts are full, at most one is incomplete, and the
// others are empty.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxtrain::io {

// Immutable once created.
struct EpochPlan {
  int64_t epoch = 0, batch_size = 1, batches = 0;
  int64_t part = 0, parts = 1;
  std::vector<int64_t> order;  // of the whole source, not empty

  // Rows of a batch that are examples; the others are padding.
  int64_t count(int64_t batch) const {
    return std::clamp<int64_t>(size() - Position(batch, 0), 0, batch_size);
  }
  // The examples of this part, those of an incomplete last batch included.
  int64_t examples() const {
    const int64_t complete = size() / (parts * batch_size);
    return complete * batch_size + count(complete);
  }
  // The example of a row, or the one `step` later: for rows that are examples among those of this
  // part, for padding, which continues from the beginning of the epoch, among all.
  int64_t index(int64_t batch, int64_t row, int64_t step = 0) const {
    if (row >= count(batch)) return At(Position(batch, row) + step);
    const int64_t own = (batch * batch_size + row + step) % examples();
    return At(Position(own / batch_size, own % batch_size));
  }

 private:
  int64_t size() const { return static_cast<int64_t>(order.size()); }
  int64_t Position(int64_t batch, int64_t row) const {
    return (batch * parts + part) * batch_size + row;
  }
  int64_t At(int64_t position) const { return order[static_cast<size_t>(position % size())]; }
};

}  // namespace mxtrain::io
