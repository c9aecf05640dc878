// SPDX-License-Identifier: Apache-2.0
#pragma once
// Updates that were asked for while the key's sum waits for other keys of its bucket.
#include <algorithm>
#include <span>
#include <vector>

#include "mxtrain/kvstore/kvstore.h"

namespace mxtrain {

class WaitingUpdates {
 public:
  void Add(std::span<const KVStore::KeySums> keys) {
    waiting_.insert(waiting_.end(), keys.begin(), keys.end());
  }
  bool Contains(int key) const {
    return std::any_of(waiting_.begin(), waiting_.end(),
                       [key](const KVStore::KeySums& update) { return update.key == key; });
  }
  // Those whose sum waits no more, in the order in which they were added; valid until the next
  // call.
  template <typename Waits>  // bool(int key)
  std::span<const KVStore::KeySums> Take(const Waits& waits) {
    taken_.clear();
    std::erase_if(waiting_, [&](const KVStore::KeySums& update) {
      if (waits(update.key)) return false;
      taken_.push_back(update);
      return true;
    });
    return taken_;
  }

 private:
  std::vector<KVStore::KeySums> waiting_, taken_;
};

}  // namespace mxtrain
