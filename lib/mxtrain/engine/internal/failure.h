// SPDX-License-Identifier: Apache-2.0
#pragma once
// Failures of functions. A failure is one object, wherever it is kept: on variables, claims and in
// the list of those that no wait has thrown. So every holder knows at once when a wait throws it.
#include <atomic>
#include <cstdint>
#include <exception>
#include <limits>
#include <map>
#include <memory>
#include <string_view>

#include "mxtrain/base/mutex.h"

namespace mxtrain::engine {

class Failure {
 public:
  // The message begins with "NAME: ". `push`: the failed function's position among all pushes.
  Failure(std::exception_ptr thrown, std::string_view name, uint64_t push);

  const std::exception_ptr error;
  const uint64_t push;

  // Whether a wait had thrown it when the push at this position was made. Never changes with time,
  // so that what a function finds on its variables depends only on the order of calls.
  bool ThrownBefore(uint64_t position) const {
    return thrown_at_.load(std::memory_order_relaxed) <= position;
  }

 private:
  friend class UnthrownFailures;
  std::atomic<uint64_t> thrown_at_{std::numeric_limits<uint64_t>::max()};  // the next push
};

using FailureRef = std::shared_ptr<Failure>;

// Those that no wait has thrown yet. All methods may be called from any thread. `next_push`: the
// position that the next push will have.
class UnthrownFailures {
 public:
  void Add(const FailureRef& failure);
  // A wait throws it.
  void Remove(const FailureRef& failure, uint64_t next_push);
  // WaitForAll throws: the error of the earliest push, with the number of the others appended to
  // its message, or null. Removes all.
  std::exception_ptr RemoveAll(uint64_t next_push);

 private:
  Mutex mutex_;
  std::multimap<uint64_t, FailureRef> by_push_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace mxtrain::engine
