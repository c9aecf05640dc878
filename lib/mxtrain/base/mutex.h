// SPDX-License-Identifier: Apache-2.0
#pragma once
// Locks whose use Clang checks at compile time (-Wthread-safety; scripts/thread_safety.sh): a
// member says which lock guards it, a function says which lock its caller holds. For other
// compilers the annotations are empty. The types cost what those of the standard library do.
//
// Clang checks every function by itself. It does not check constructors, destructors and exception
// handlers, and takes a lambda for a function that is called without locks, so waits are loops:
//
//   MutexLock lock(mutex_);
//   while (queue_.empty()) filled_.Wait(lock);
//
// It knows no locks that their holder may take again; those stay std::recursive_mutex.
#include <condition_variable>
#include <mutex>

#include "mxtrain/base/macros.h"

// On a member: accessed only while the lock is held.
#define MXTRAIN_GUARDED_BY(lock) MXTRAIN_CLANG_ATTRIBUTE(guarded_by(lock))
// On a lock: never taken by a thread that holds one of these.
#define MXTRAIN_ACQUIRED_BEFORE(...) MXTRAIN_CLANG_ATTRIBUTE(acquired_before(__VA_ARGS__))
// On a function: the caller holds the locks, or does not (the function takes them).
#define MXTRAIN_REQUIRES(...) MXTRAIN_CLANG_ATTRIBUTE(requires_capability(__VA_ARGS__))
#define MXTRAIN_EXCLUDES(...) MXTRAIN_CLANG_ATTRIBUTE(locks_excluded(__VA_ARGS__))
// On a function that is not checked; a comment says why it is right.
#define MXTRAIN_NO_THREAD_SAFETY_ANALYSIS MXTRAIN_CLANG_ATTRIBUTE(no_thread_safety_analysis)

// For the definition of a lock and of the object that holds one.
#define MXTRAIN_CAPABILITY(name) MXTRAIN_CLANG_ATTRIBUTE(capability(name))
#define MXTRAIN_SCOPED_CAPABILITY MXTRAIN_CLANG_ATTRIBUTE(scoped_lockable)
#define MXTRAIN_ACQUIRE(...) MXTRAIN_CLANG_ATTRIBUTE(acquire_capability(__VA_ARGS__))
#define MXTRAIN_RELEASE(...) MXTRAIN_CLANG_ATTRIBUTE(release_capability(__VA_ARGS__))

namespace mxtrain {

// Taken by a MutexLock.
class MXTRAIN_CAPABILITY("mutex") Mutex {
 public:
  Mutex() = default;
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;

 private:
  friend class MutexLock;
  std::mutex mutex_;
};

// Holds a mutex until destruction, except between Unlock and Lock.
class MXTRAIN_SCOPED_CAPABILITY MutexLock {
 public:
  explicit MutexLock(Mutex& mutex) MXTRAIN_ACQUIRE(mutex) : lock_(mutex.mutex_) {}
  ~MutexLock() MXTRAIN_RELEASE() = default;
  MutexLock(const MutexLock&) = delete;
  MutexLock& operator=(const MutexLock&) = delete;

  void Unlock() MXTRAIN_RELEASE() { lock_.unlock(); }
  void Lock() MXTRAIN_ACQUIRE() { lock_.lock(); }

 private:
  friend class ConditionVariable;
  std::unique_lock<std::mutex> lock_;
};

class ConditionVariable {
 public:
  // Releases the lock while it waits. May return without a notification: wait in a loop.
  void Wait(MutexLock& lock) { condition_.wait(lock.lock_); }
  void NotifyOne() { condition_.notify_one(); }
  void NotifyAll() { condition_.notify_all(); }

 private:
  std::condition_variable condition_;
};

}  // namespace mxtrain
