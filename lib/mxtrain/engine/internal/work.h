// SPDX-License-Identifier: Apache-2.0
#pragma once
// The threaded engine's units. A Work can become ready and then run once; a Claim is a Work that
// first waits for variables.
#include <atomic>
#include <cstdint>
#include <limits>
#include <memory>

#include "mxtrain/engine/internal/device_marks.h"
#include "mxtrain/engine/internal/failure.h"
#include "mxtrain/engine/internal/spin_lock.h"

namespace mxtrain::engine {

class WorkerPool;
class ThreadedVar;

enum class WorkKind : uint8_t { kTask, kDeletion, kSequenceOp, kSequencePort, kWaiter };

struct Work {
  WorkKind kind = WorkKind::kTask;
  bool marked = false;  // may depend on device work that is not done
  int priority = 0;
  uint64_t order = 0;          // position among all pushes of the engine
  WorkerPool* pool = nullptr;  // runs it; null: completed by the thread that makes it ready
  Work* next = nullptr;        // in its one list: of ready works, or of a pool
};

// Which of two ready works runs first: the higher priority, then the earlier push.
inline bool Precedes(const Work& a, const Work& b) {
  return a.priority != b.priority ? a.priority > b.priority : a.order < b.order;
}

// Works in the order in which they became ready.
class ReadyList {
 public:
  void Push(Work* work) {
    work->next = nullptr;
    (tail_ ? tail_->next : head_) = work;
    tail_ = work;
  }
  Work* Pop() {
    Work* work = head_;
    if (work) {
      head_ = work->next;
      if (!head_) tail_ = nullptr;
    }
    return work;
  }

 private:
  Work* head_ = nullptr;
  Work* tail_ = nullptr;
};

// Among the failures that a claim meets, that of a device ranks after those on variables.
inline constexpr int kDeviceRank = std::numeric_limits<int>::max();

// Keeps the failure of lowest rank among those offered by several threads, so the outcome does not
// depend on timing.
class FirstFailure {
 public:
  void Offer(const FailureRef& failure, int rank) {
    SpinLockGuard lock(lock_);
    if (failure && (!failure_ || rank < rank_)) {
      failure_ = failure;
      rank_ = rank;
    }
  }
  void Offer(const FirstFailure& other) { Offer(other.get(), other.rank()); }
  // These need no lock once all offers have been made.
  const FailureRef& get() const MXTRAIN_NO_THREAD_SAFETY_ANALYSIS { return failure_; }
  int rank() const MXTRAIN_NO_THREAD_SAFETY_ANALYSIS { return rank_; }
  void Clear() MXTRAIN_NO_THREAD_SAFETY_ANALYSIS { failure_ = nullptr; }

 private:
  FailureRef failure_ MXTRAIN_GUARDED_BY(lock_);
  int rank_ MXTRAIN_GUARDED_BY(lock_) = 0;
  SpinLock lock_;
};

struct Claim;

// A claim's place in the queue of one variable.
struct Link {
  ThreadedVar* var = nullptr;
  Claim* claim = nullptr;
  Link* next = nullptr;
  bool write = false;
  bool renews = false;
  int rank = 0;  // place among the claim's variables
};

struct Claim : Work {
  // Adds the device marks of a granted variable; from any thread.
  void Mark(const DeviceMarks& from) {
    SpinLockGuard lock(marks_lock);
    if (!marks) marks = std::make_unique<DeviceMarks>();
    marks->Add(from);
    marked = marked || !marks->empty();
  }
  void ClearMarks() {
    marked = false;
    if (marks) marks->Clear();
  }

  // Variables not granted, plus one during the push; later, awaited device work.
  std::atomic<int> missing{0};
  SpinLock marks_lock;
  FirstFailure failure;  // of the first of its variables that has one
  // Device work it must wait for; after being issued on a device, its own mark. Null if there was
  // none.
  std::unique_ptr<DeviceMarks> marks;
};

// Counts granted variables; true if the claim got its last.
inline bool CountGranted(Claim& claim, int granted = 1) {
  return claim.missing.fetch_sub(granted, std::memory_order_acq_rel) == granted;
}

}  // namespace mxtrain::engine
