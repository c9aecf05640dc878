// SPDX-License-Identifier: Apache-2.0
#pragma once
// The threads of one kind of lane and their ready queue. A worker spins briefly before it parks.
// Threads start at the pool's first use. Enqueue may be called from any thread.
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/internal/device_lane.h"
#include "mxtrain/engine/internal/lane_kind.h"
#include "mxtrain/engine/internal/ready_queue.h"
#include "mxtrain/engine/internal/spin_lock.h"

namespace mxtrain::engine {

struct Worker {
  WorkerPool* pool = nullptr;
  Stream* stream = nullptr;
  int profile_row = 0;
  std::exception_ptr startup_error;  // why the worker could not start; its functions fail with it
};

// Runs what a worker took; implemented by the engine.
class WorkRunner : public LaneOwner {
 public:
  // Called first on the worker's thread; sets the worker's trace track.
  virtual void EnterWorker(Worker* worker, LaneKind kind, int index) = 0;
  // Runs `work`; returns a work of the same pool to run next without queueing, or null.
  virtual Work* RunWork(Work* work, const Worker& worker) = 0;
};

class WorkerPool {
 public:
  WorkerPool(WorkRunner& runner, const EngineOptions& options, LaneKind kind, int num_workers);

  void Start();  // idempotent; throws kMemory if a thread cannot be created
  void Enqueue(Work* work);
  // Whether nothing is ready and no worker runs anything.
  bool Rests() const;
  // The lane of a device's pool, which has one worker; null on the CPU.
  DeviceLane* lane() const { return lane_.get(); }
  // Stops the threads; nothing may be ready. Call it on all pools before destroying any: workers
  // wake workers of other pools.
  void Stop();

 private:
  void RunWorker(int index);
  Worker MakeWorker(int index);
  // The next to run: the first of `candidate` (may be null) and the queue. Blocks while there is
  // neither; null at the end.
  Work* Take(Work* candidate);
  void Park();

  WorkRunner& runner_;
  const EngineOptions& options_;
  const LaneKind kind_;
  const int num_workers_;
  const std::unique_ptr<DeviceLane> lane_;

  std::once_flag started_;
  std::vector<std::thread> threads_;

  alignas(64) std::atomic<bool> waiting_{
      false};  // queue_ is not empty, or stopping_: read by idle workers without the lock
  mutable SpinLock lock_;
  int started_workers_ MXTRAIN_GUARDED_BY(lock_) = 0;
  ReadyQueue queue_ MXTRAIN_GUARDED_BY(lock_);
  // Workers that parked or are about to, and were not woken.
  int sleepers_ MXTRAIN_GUARDED_BY(lock_) = 0;
  bool stopping_ MXTRAIN_GUARDED_BY(lock_) = false;

  Mutex park_mutex_;
  ConditionVariable called_;
  int calls_ MXTRAIN_GUARDED_BY(park_mutex_) = 0;  // wake-ups not yet taken
};

}  // namespace mxtrain::engine
