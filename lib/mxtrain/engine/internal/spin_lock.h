// SPDX-License-Identifier: Apache-2.0
#pragma once
// A lock for critical sections of a few instructions that never block or allocate much. Yields when
// contended, so a preempted holder gets its core back. Works with std::lock_guard.
#include <atomic>
#include <thread>

namespace mxtrain::engine {

class SpinLock {
 public:
  void lock() {
    while (locked_.exchange(true, std::memory_order_acquire)) {
      for (int spins = 0; locked_.load(std::memory_order_relaxed); ++spins) {
        if (spins >= kSpinsBeforeYield) std::this_thread::yield();
      }
    }
  }
  void unlock() { locked_.store(false, std::memory_order_release); }

 private:
  static constexpr int kSpinsBeforeYield = 64;
  std::atomic<bool> locked_{false};
};

}  // namespace mxtrain::engine
