// SPDX-License-Identifier: Apache-2.0
#pragma once
// A variable of the threaded engine: a queue of links. Links are granted strictly in push order: a
// write alone, neighbouring reads together. A granted link leaves the queue, so the queue holds
// only waiting links; the variable counts links granted and not yet released.
#include <atomic>
#include <cstdint>
#include <memory>

#include "mxtrain/engine/internal/device_marks.h"
#include "mxtrain/engine/internal/failure.h"
#include "mxtrain/engine/internal/handles.h"
#include "mxtrain/engine/internal/spin_lock.h"
#include "mxtrain/engine/internal/work.h"

namespace mxtrain::engine {

class ThreadedVar final : public Var {
 public:
  // Appends the link to the queue; true if it is granted at once. A failure on the variable goes to
  // the claim. Callers hold the engine's push lock, which makes a push over several variables
  // atomic.
  bool Acquire(Link* link);
  // Releases a granted link; a written variable keeps a non-null `failure` unless it has one.
  // Claims that thereby get their last variable become ready. `marks`: device work issued under the
  // link that may not be done; null: none.
  void Release(Link* link, const FailureRef& failure, const DeviceMarks* marks, ReadyList* ready);
  // Removes and returns the failure; for the claim of a wait, which holds the variable.
  FailureRef TakeFailure();

  // Forgets work on lanes that have failed: a wait has thrown their failure.
  void DropFailedMarks();

  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  // Under the push lock.
  void CountWrite() { version_.store(version() + 1, std::memory_order_relaxed); }
  // As new. No other thread may use the variable, so this takes no lock.
  void Reset() MXTRAIN_NO_THREAD_SAFETY_ANALYSIS;

  // Guarded by the push lock: the last check that met it, and the last that found it renewed.
  uint64_t last_push = 0, last_renewal = 0;
  ThreadedVar* next_free = nullptr;  // FreeList's

 private:
  bool TryGrant(const Link& link) MXTRAIN_REQUIRES(lock_);
  void Pass(const Link& link) MXTRAIN_REQUIRES(lock_);
  void KeepMarks(const Link& link, const DeviceMarks* marks) MXTRAIN_REQUIRES(lock_);

  // Device work issued under released links that may not be done: a reader waits for the last
  // write, a writer also for all reads since.
  struct Issued {
    DeviceMarks writes, reads;
  };

  std::atomic<uint64_t> version_{0};

  SpinLock lock_;
  bool writing_ MXTRAIN_GUARDED_BY(lock_) = false;
  int reading_ MXTRAIN_GUARDED_BY(lock_) = 0;
  Link* head_ MXTRAIN_GUARDED_BY(lock_) = nullptr;
  Link* tail_ MXTRAIN_GUARDED_BY(lock_) = nullptr;
  FailureRef failure_ MXTRAIN_GUARDED_BY(lock_);  // why the contents are not valid
  // Null until a device works on the variable.
  std::unique_ptr<Issued> issued_ MXTRAIN_GUARDED_BY(lock_);
};

}  // namespace mxtrain::engine
