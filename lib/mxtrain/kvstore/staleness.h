// SPDX-License-Identifier: Apache-2.0
#pragma once
// Which update of a key may be applied next, if ranks do not wait for each other (`dist_async`).
//
// A rank computes a gradient from the value that it read last, and reads again with its update. The
// staleness of an update is the number of other ranks' updates that were applied between its read
// and itself. It stays within a bound, as in SSP (Ho et al., "More Effective Distributed ML via a
// Stale Synchronous Parallel Parameter Server", 2013), which bounds steps instead: an update waits
// while it would leave another rank, which still computes, no time for its own.
//
// The rank that has read before all others never waits. So no ranks wait for each other over
// several keys, if each pushes all keys of a step before it waits for any of them.
#include <cstdint>
#include <vector>

#include "mxtrain/base/macros.h"

namespace mxtrain {

class MXTRAIN_API StalenessBound {
 public:
  // `most`: at least ranks - 1, since all ranks may read at the same time.
  StalenessBound(int ranks, int64_t most);

  // All ranks read now.
  void Begin();
  // The rank pushes no more until Begin.
  void Rest(int rank);
  bool Admits(int rank) const;  // an update of a rank that does not rest
  // Counts an update that is admitted; the rank reads the value after it. Returns its staleness.
  int64_t Apply(int rank);
  // Of all ranks so far.
  int64_t updates() const { return updates_; }
  void StartAt(int64_t updates) { updates_ = updates; }

 private:
  struct Read {
    int64_t updates = 0;  // of the key, before it
    bool rests = false;
  };
  const int64_t most_;
  int64_t updates_ = 0;
  std::vector<Read> reads_;                 // by rank
  mutable std::vector<int64_t> of_others_;  // of Admits
};

}  // namespace mxtrain
