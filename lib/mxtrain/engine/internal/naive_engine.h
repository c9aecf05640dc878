// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs every function during its push, in push order, on the pushing thread: a reference for tests
// and a debugging aid that shares no scheduling code with the threaded engine. A push made while a
// function runs (from inside it or from another thread) is queued and runs before the running push
// returns. The push of an AsyncFn waits for its callback.
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <unordered_map>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/internal/failure.h"
#include "mxtrain/engine/internal/lane_kind.h"
#include "mxtrain/engine/internal/profiler.h"

namespace mxtrain::engine {

class NaiveEngine final : public Engine {
 public:
  explicit NaiveEngine(EngineOptions options);
  ~NaiveEngine() override;

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
  uint64_t Ended() const override;
  bool AwaitEnd(uint64_t ended) override;
  void StartProfile() override;
  void StopProfile(const std::string& path) override;
  void ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns,
                   int64_t end_ns) override;
  void ProfileCounter(const std::string& name, int64_t value) override;

 private:
  struct NaiveVar;
  struct NaiveOpr;
  struct NaiveSequence;
  using Job = UniqueFunction<void(uint64_t push)>;  // its position among all pushes
  using Body = UniqueFunction<void(RunContext)>;

  static NaiveVar* Get(VarHandle var);
  void CheckContext(Context ctx, const char* name);  // throws kDevice if unavailable
  // Counts the writes and runs the job, or queues it for the thread that is running jobs.
  void Submit(Job job, std::span<const VarHandle> writes);
  void EnterThread() MXTRAIN_REQUIRES(mutex_);  // before running jobs
  // Runs `body` unless a variable has a failure; either failure goes to the written variables.
  void RunFunction(Body& body, std::span<const VarHandle> reads, std::span<const VarHandle> writes,
                   const PushOptions& options, uint64_t push);
  // Null, or what no wait has thrown yet.
  FailureRef Try(Body& body, Context ctx, FnProperty property, int priority, const char* name,
                 uint64_t push);
  void RunSequence(NaiveSequence& sequence, std::span<const VarHandle> ports, uint64_t push);
  void RunToCallback(AsyncFn& fn, RunContext context);
  RunContext MakeRunContext(Context ctx, FnProperty property);
  // Waits until no job runs; `lock` holds mutex_.
  void AwaitIdle(MutexLock& lock) MXTRAIN_REQUIRES(mutex_);
  void Wait(VarHandle var, const char* what);

  const EngineOptions options_;
  const uint64_t serial_;  // unique in the process
  Profiler profiler_;
  UnthrownFailures unthrown_;

  mutable Mutex mutex_;
  ConditionVariable idle_;  // a job has ended, or awaits a callback
  // While true, only the running thread touches variable contents.
  bool running_ MXTRAIN_GUARDED_BY(mutex_) = false;
  bool awaits_callback_ MXTRAIN_GUARDED_BY(mutex_) = false;  // what runs
  uint64_t next_push_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  uint64_t ended_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  std::deque<std::pair<uint64_t, Job>> queue_ MXTRAIN_GUARDED_BY(mutex_);
  std::unordered_map<VarHandle, std::unique_ptr<NaiveVar>> vars_ MXTRAIN_GUARDED_BY(mutex_);
  std::unordered_map<OprHandle, std::shared_ptr<NaiveOpr>> oprs_ MXTRAIN_GUARDED_BY(mutex_);
  std::unordered_map<SequenceHandle, std::shared_ptr<NaiveSequence>> sequences_
      MXTRAIN_GUARDED_BY(mutex_);

  // Used only by the running thread.
  std::map<LaneKind, std::unique_ptr<Stream>> streams_;
  std::exception_ptr startup_error_;  // the thread's functions fail with it
};

}  // namespace mxtrain::engine
