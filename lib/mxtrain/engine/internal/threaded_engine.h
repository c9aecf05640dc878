// SPDX-License-Identifier: Apache-2.0
#pragma once
// The multithreaded engine. A push enters its function into the queues of its variables
// (threaded_var.h) and counts what is missing. Whoever grants the last variable hands the function
// to the workers of its lane (worker_pool.h), or completes it directly if it is a wait, a port or a
// deletion.
#include <atomic>
#include <limits>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/internal/failure.h"
#include "mxtrain/engine/internal/free_list.h"
#include "mxtrain/engine/internal/frozen_sequence.h"
#include "mxtrain/engine/internal/handle_table.h"
#include "mxtrain/engine/internal/profiler.h"
#include "mxtrain/engine/internal/task.h"
#include "mxtrain/engine/internal/worker_pool.h"

namespace mxtrain::engine {

class ThreadedEngine final : public Engine, private WorkRunner {
 public:
  explicit ThreadedEngine(EngineOptions options);
  ~ThreadedEngine() override;

  VarHandle NewVar() override;
  void DeleteVariable(VarHandle var, Fn on_free, Context ctx) override;
  bool AwaitDeletion() override;
  uint64_t Version(VarHandle var) const override;
  void PushSync(Fn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes,
                const PushOptions& options) override;
  void PushAsync(AsyncFn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes,
                 const PushOptions& options) override;
  OprHandle NewOperator(AsyncFn fn, std::span<const VarHandle> reads,
                        std::span<const VarHandle> writes, const PushOptions& options) override;
  void Push(OprHandle opr, int priority) override;
  void DeleteOperator(OprHandle opr) override;
  SequenceHandle NewSequence(std::vector<SequenceOp> ops, int num_ports) override;
  void Push(SequenceHandle sequence, std::span<const VarHandle> ports) override;
  void DeleteSequence(SequenceHandle sequence) override;
  void WaitToRead(VarHandle var) override;
  void WaitForVar(VarHandle var) override;
  void WaitForAll() override;
  void Drain(VarHandle var) override;
  uint64_t Ended() const override { return finished_.load(); }
  bool AwaitEnd(uint64_t ended) override;
  void StartProfile() override;
  void StopProfile(const std::string& path) override;
  void ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns,
                   int64_t end_ns) override;
  void ProfileCounter(const std::string& name, int64_t value) override;

 private:
  using Vars = std::span<const VarHandle>;

  // Adds the GPU lanes to the table, once.
  void AddGpus();
  // Of a logical CPU device, created at its first use.
  WorkerPool* LogicalCpuPool(LaneKind kind);
  // The started pool that serves such functions; throws kDevice if there is none.
  WorkerPool* PoolFor(Context ctx, FnProperty property, const char* name);

  // Pushing.
  void CheckDistinct(Vars reads, Vars writes, const char* name) MXTRAIN_REQUIRES(push_lock_);
  template <typename Function>
  void PushFunction(Function fn, Vars reads, Vars writes, const PushOptions& options);
  Task* NewTask(WorkerPool* pool, const PushOptions& options) MXTRAIN_REQUIRES(push_lock_);
  void Submit(Task* task, Vars reads, Vars writes, Vars renews, ReadyList* ready)
      MXTRAIN_REQUIRES(push_lock_);
  void SubmitRun(FrozenSequence& sequence, Vars ports, ReadyList* ready)
      MXTRAIN_REQUIRES(push_lock_);
  void CountPushed() MXTRAIN_REQUIRES(push_lock_) {
    pushed_.store(pushed_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }

  // Completes what needs no worker and hands the rest to its pools, except the first work for
  // `here`, which it returns: the caller is a worker of that pool and runs it next.
  Work* Dispatch(ReadyList& ready, const WorkerPool* here);
  void Complete(Claim* claim, ReadyList* ready);
  void CompleteWaiter(Waiter* waiter, ReadyList* ready);
  void RunDeletion(Task* deletion, ReadyList* ready);
  void CountDeletion(const Task& deletion);
  static bool Frees(const Task& deletion) {
    return !std::holds_alternative<std::monostate>(deletion.function);
  }

  // Device work. For a work that became ready and depends on device work: true if it runs on the
  // host and now waits; if it runs on a device, records the events its stream will wait for.
  bool AwaitDevices(Work* work);
  bool Park(Claim* claim);
  void Resume(ReadyList& ready) override;
  // Before and after a device function: its stream waits for what the claim depends on; its
  // variables then carry its work.
  void BeginIssue(DeviceLane* lane, Claim* claim);
  void EndIssue(DeviceLane* lane, Task* task);
  static void CheckLane(const DeviceLane* lane);  // throws its failure; null is fine

  // Running, on a worker's thread.
  void EnterWorker(Worker* worker, LaneKind kind, int index) override;
  Work* RunWork(Work* work, const Worker& worker) override;
  Work* RunTask(Task* task, const Worker& worker);
  Work* RunAsync(Task* task, AsyncFn& fn, const Worker& worker);
  Work* RunSequenceOp(SequenceOpWork* work, const Worker& worker);
  // Calls `body` with the run context; returns its exception or null.
  template <typename Body>
  std::exception_ptr Try(Body&& body, const Worker& worker, Context ctx, const char* name,
                         int priority);
  // What a function threw becomes a failure that no wait has thrown yet; null for null.
  FailureRef AddFailure(std::exception_ptr error, const char* name, uint64_t order) override;

  // Completion; from any thread.
  static void OnCallback(void* task, std::exception_ptr error);
  void JoinAsyncEnds(Task* task);  // issues its work on a device
  void Release(Task* task, ReadyList* ready);
  void DropUse(ThreadedOpr* opr);
  void DropUse(FrozenSequence* sequence);
  void CountFinished();
  void CountFinishedByOutsider();

  // `takes`: the failure of the variable, which is returned.
  FailureRef WaitBehind(VarHandle var, bool write, bool takes, const char* what);
  void Wait(VarHandle var, bool write, const char* what);
  void WaitUntilIdle();
  uint64_t next_order();
  // Whether everything pending waits for callbacks of asynchronous functions: nothing is ready,
  // running, or awaited from a device. While works pass from one thread to another it may be true
  // by mistake, for a moment.
  bool WaitsForCallbacks();
  void Rest() override;

  using Pools = std::vector<std::pair<LaneKind, std::unique_ptr<WorkerPool>>>;

  const EngineOptions options_;
  Pools pools_;  // constant after construction
  std::once_flag gpus_added_;
  std::atomic<bool> has_gpus_{false};
  Pools gpu_pools_;  // constant once has_gpus_ is set
  Mutex logical_cpus_mutex_;
  Pools logical_cpus_ MXTRAIN_GUARDED_BY(logical_cpus_mutex_);  // compute; entries stay
  Profiler profiler_;
  UnthrownFailures unthrown_;

  // Makes pushes atomic: every variable's queue holds them in one common order.
  SpinLock push_lock_;
  // Number of the last check for distinct variables.
  uint64_t last_push_ MXTRAIN_GUARDED_BY(push_lock_) = 0;
  uint64_t next_order_ MXTRAIN_GUARDED_BY(push_lock_) = 0;
  ObjectPool<ThreadedVar> vars_;  // Get under push_lock_, Put without; likewise tasks_
  ObjectPool<Task> tasks_;
  HandleTable<ThreadedOpr> oprs_;
  HandleTable<FrozenSequence> sequences_;

  // The engine is idle when both are equal. On separate cache lines: one is written by pushing
  // threads, the other by workers.
  alignas(64) std::atomic<uint64_t> pushed_{0};  // written under push_lock_
  alignas(64) std::atomic<uint64_t> finished_{0};
  std::atomic<int> idle_waiters_{0};
  Mutex idle_mutex_;
  ConditionVariable idle_;  // something ended, or a thread rests

  // Deletions that free something: pending, pending only on device work, and finished.
  std::atomic<int64_t> deletions_pending_{0}, deletions_parked_{0};
  std::atomic<uint64_t> deletions_run_{0};
  std::atomic<int> deletion_waiters_{0};
  Mutex deletion_mutex_;
  ConditionVariable deletion_ran_;      // or a thread rests
  std::atomic<uint64_t> callbacks_{0};  // that were called
  // Their number when a wait for a deletion was last given up: none has come since, so nothing has
  // changed.
  uint64_t given_up_at_ MXTRAIN_GUARDED_BY(deletion_mutex_) = std::numeric_limits<uint64_t>::max();
};

}  // namespace mxtrain::engine
