// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/staleness.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain {

StalenessBound::StalenessBound(int ranks, int64_t most)
    : most_(most), reads_(static_cast<size_t>(ranks)) {
  MXTRAIN_ASSERT(most >= ranks - 1);
}

void StalenessBound::Begin() {
  for (Read& read : reads_) read = {updates_, false};
}

void StalenessBound::Rest(int rank) {
  reads_[static_cast<size_t>(rank)].rests = true;
}

// Whether the others, in the order of their reads, can come one after the other behind this one.
bool StalenessBound::Admits(int rank) const {
  of_others_.clear();
  for (size_t r = 0; r < reads_.size(); ++r) {
    if (static_cast<int>(r) != rank && !reads_[r].rests) of_others_.push_back(reads_[r].updates);
  }
  std::sort(of_others_.begin(), of_others_.end());
  int64_t next = updates_ + 1;
  return std::all_of(of_others_.begin(), of_others_.end(),
                     [&](int64_t read) { return next++ - read <= most_; });
}

int64_t StalenessBound::Apply(int rank) {
  Read& read = reads_[static_cast<size_t>(rank)];
  MXTRAIN_ASSERT(!read.rests && Admits(rank));
  const int64_t staleness = updates_ - read.updates;
  read.updates = ++updates_;
  return staleness;
}

}  // namespace mxtrain
