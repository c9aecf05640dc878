// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/mutex.h"

#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <thread>
#include <vector>

namespace mxtrain {
namespace {

// A number that one thread hands to another, which takes it.
class Mailbox {
 public:
  void Put(int number) {
    MutexLock lock(mutex_);
    while (full_) changed_.Wait(lock);
    number_ = number;
    full_ = true;
    changed_.NotifyAll();
  }
  int Take() {
    MutexLock lock(mutex_);
    while (!full_) changed_.Wait(lock);
    full_ = false;
    const int number = number_;
    lock.Unlock();
    changed_.NotifyOne();
    return number;
  }

 private:
  Mutex mutex_;
  ConditionVariable changed_;
  bool full_ MXTRAIN_GUARDED_BY(mutex_) = false;
  int number_ MXTRAIN_GUARDED_BY(mutex_) = 0;
};

struct Counter {
  Mutex mutex;
  int64_t count MXTRAIN_GUARDED_BY(mutex) = 0;
};

// Another thread that takes the mutex once and releases it.
class Rival {
 public:
  explicit Rival(Mutex& mutex)
      : thread_([this, &mutex] {
          const MutexLock lock(mutex);
          got_ = true;
        }) {}
  ~Rival() { thread_.join(); }
  bool got() const { return got_; }
  void AwaitGot() const {
    while (!got_) std::this_thread::yield();
  }

 private:
  std::atomic<bool> got_{false};
  std::thread thread_;
};

TEST_CASE("one thread at a time holds a mutex") {
  constexpr int kThreads = 4, kRounds = 20000;
  Counter counter;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&counter] {
      for (int round = 0; round < kRounds; ++round) {
        const MutexLock lock(counter.mutex);
        const int64_t before = counter.count;
        if (round % 1000 == 0) std::this_thread::yield();
        counter.count = before + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const MutexLock lock(counter.mutex);
  CHECK(counter.count == kThreads * kRounds);
}

TEST_CASE("a lock can be released early and taken again") {
  Mutex mutex;
  MutexLock lock(mutex);
  {
    const Rival rival(mutex);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(rival.got());
    lock.Unlock();
    rival.AwaitGot();
  }
  lock.Lock();
  {
    const Rival rival(mutex);
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    CHECK_FALSE(rival.got());
    lock.Unlock();
  }
}

TEST_CASE("a condition variable passes numbers between two threads, each once and in order") {
  constexpr int kNumbers = 5000;
  Mailbox mailbox;
  std::thread sender([&mailbox] {
    for (int i = 0; i < kNumbers; ++i) mailbox.Put(i);
  });
  std::vector<int> taken;
  for (int i = 0; i < kNumbers; ++i) taken.push_back(mailbox.Take());
  sender.join();
  bool in_order = true;
  for (int i = 0; i < kNumbers; ++i) in_order = in_order && taken[static_cast<size_t>(i)] == i;
  CHECK(in_order);
}

}  // namespace
}  // namespace mxtrain
