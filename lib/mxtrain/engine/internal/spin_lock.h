// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lock for critical sections of a few instructions that never block or allocate much. Yields when
// contended, so a preempted holder gets its core back.
#include <atomic>
#include <thread>

#include "mxtrain/base/mutex.h"

namespace mxtrain::engine {

class MXTRAIN_CAPABILITY("spin lock") SpinLock {
 public:
  void Lock() MXTRAIN_ACQUIRE() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
        if (spins >= kSpinsBeforeYield) std::this_thread::yield();
      }
    }
  }
  void Unlock() MXTRAIN_RELEASE() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpinsBeforeYield = 64;
  std::atomic<bool> locked_{false};
};

// Holds a spin lock until destruction.
class MXTRAIN_SCOPED_CAPABILITY SpinLockGuard {
 public:
  explicit SpinLockGuard(SpinLock& lock) MXTRAIN_ACQUIRE(lock) : lock_(lock) { lock_.Lock(); }
  ~SpinLockGuard() MXTRAIN_RELEASE() { lock_.Unlock(); }
  SpinLockGuard(const SpinLockGuard&) = delete;
  SpinLockGuard& operator=(const SpinLockGuard&) = delete;

 private:
  SpinLock& lock_;
};

}  // namespace mxtrain::engine
