// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/threaded_engine.h"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "mxtrain/base/clock.h"
#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/engine/function_scope.h"

namespace mxtrain::engine {
namespace {

ThreadedVar* Get(VarHandle var) {
  return static_cast<ThreadedVar*>(var);
}

// How long a caller that needs memory waits for callbacks that nothing but other threads can call,
// or the caller itself, which then never does.
constexpr std::chrono::milliseconds kPatience(2000), kPause(10);

}  // namespace

ThreadedEngine::ThreadedEngine(EngineOptions options) : options_(std::move(options)) {
  WorkRunner& runner = *this;
  const auto add = [this, &runner](FnProperty property, int workers) {
    if (workers < 1)
      Throw(ErrorKind::kUsage,
            "an engine needs at least one worker of each kind; {} were requested", workers);
    const LaneKind kind = LaneKindOf(Context::cpu(), property);
    pools_.emplace_back(kind, std::make_unique<WorkerPool>(runner, options_, kind, workers));
  };
  add(FnProperty::kNormal, options_.cpu_workers);
  add(FnProperty::kCopyFromDevice, options_.copy_workers);
  add(FnProperty::kCopyToDevice, options_.copy_workers);
  add(FnProperty::kIO, options_.io_workers);
  add(FnProperty::kComm, 1);  // collectives run in one order
}

ThreadedEngine::~ThreadedEngine() {
  WaitUntilIdle();
  oprs_.DeleteAll();
  sequences_.DeleteAll();
  WaitUntilIdle();  // for pushes by their functions' destructors
  // Completers first: they wake workers.
  for (auto& [kind, pool] : gpu_pools_) pool->lane()->Stop();
  for (Pools* pools : {&pools_, &gpu_pools_, &logical_cpus_}) {
    for (auto& [kind, pool] : *pools) pool->Stop();
  }
}

void ThreadedEngine::AddGpus() {
  const int count = options_.gpu_count ? options_.gpu_count() : 0;
  WorkRunner& runner = *this;
  for (int id = 0; id < count; ++id) {
    for (const FnProperty property : {FnProperty::kNormal, FnProperty::kCopyFromDevice,
                                      FnProperty::kCopyToDevice, FnProperty::kComm}) {
      const LaneKind kind = LaneKindOf(Context::gpu(id), property);
      gpu_pools_.emplace_back(kind, std::make_unique<WorkerPool>(runner, options_, kind, 1));
    }
  }
  has_gpus_.store(true, std::memory_order_release);
}

WorkerPool* ThreadedEngine::LogicalCpuPool(LaneKind kind) {
  MutexLock lock(logical_cpus_mutex_);
  auto found = std::find_if(logical_cpus_.begin(), logical_cpus_.end(),
                            [&](const auto& entry) { return entry.first == kind; });
  if (found == logical_cpus_.end()) {
    WorkRunner& runner = *this;
    logical_cpus_.emplace_back(
        kind, std::make_unique<WorkerPool>(runner, options_, kind, options_.cpu_workers));
    found = std::prev(logical_cpus_.end());
  }
  found->second->Start();
  return found->second.get();
}

WorkerPool* ThreadedEngine::PoolFor(Context ctx, FnProperty property, const char* name) {
  const LaneKind wanted = LaneKindOf(ctx, property);
  const bool on_gpu = wanted.ctx.type == DeviceType::kGPU;
  if (!on_gpu && wanted.ctx != Context::cpu()) return LogicalCpuPool(wanted);
  if (on_gpu) std::call_once(gpus_added_, [this] { AddGpus(); });
  for (auto& [kind, pool] : on_gpu ? gpu_pools_ : pools_) {
    if (kind == wanted) {
      pool->Start();
      return pool.get();
    }
  }
  ThrowNoWorkers(ctx, name);
}

// ---- Pushing

VarHandle ThreadedEngine::NewVar() {
  SpinLockGuard lock(push_lock_);
  return vars_.Get();
}

void ThreadedEngine::CheckDistinct(Vars reads, Vars writes, const char* name) {
  ++last_push_;
  for (const Vars list : {reads, writes}) {
    for (VarHandle var : list) {
      if (Get(var)->last_push == last_push_) ThrowRepeatedVar(name);
      Get(var)->last_push = last_push_;
    }
  }
}

Task* ThreadedEngine::NewTask(WorkerPool* pool, const PushOptions& options) {
  Task* task = tasks_.Get();
  task->kind = WorkKind::kTask;
  task->engine = this;
  task->pool = pool;
  task->priority = options.priority;
  task->name = options.name;
  task->ctx = options.ctx;
  return task;
}

void ThreadedEngine::Submit(Task* task, Vars reads, Vars writes, Vars renews, ReadyList* ready) {
  const int count = static_cast<int>(reads.size() + writes.size());
  Link* link = task->MakeLinks(count);
  task->order = next_order_++;
  task->missing.store(count + 1, std::memory_order_relaxed);
  CountPushed();
  for (VarHandle var : renews) Get(var)->last_renewal = next_order_;
  int granted = 1;
  int rank = 0;
  for (const Vars list : {reads, writes}) {
    for (VarHandle var : list) {
      const bool write = rank >= static_cast<int>(reads.size());
      const bool renewed = write && Get(var)->last_renewal == next_order_;
      *link = {.var = Get(var), .claim = task, .write = write, .renews = renewed, .rank = rank};
      if (link->write) link->var->CountWrite();
      granted += link->var->Acquire(link);
      ++link;
      ++rank;
    }
  }
  if (CountGranted(*task, granted)) ready->Push(task);
}

template <typename Function>
void ThreadedEngine::PushFunction(Function fn, Vars reads, Vars writes,
                                  const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  WorkerPool* pool = PoolFor(options.ctx, options.property, options.name);
  ReadyList ready;
  {
    SpinLockGuard lock(push_lock_);
    CheckDistinct(reads, writes, options.name);
    Task* task = NewTask(pool, options);
    task->function.emplace<Function>(std::move(fn));
    Submit(task, reads, writes, options.renews, &ready);
  }
  Dispatch(ready, nullptr);
}

void ThreadedEngine::PushSync(Fn fn, Vars reads, Vars writes, const PushOptions& options) {
  PushFunction(std::move(fn), reads, writes, options);
}

void ThreadedEngine::PushAsync(AsyncFn fn, Vars reads, Vars writes, const PushOptions& options) {
  PushFunction(std::move(fn), reads, writes, options);
}

void ThreadedEngine::DeleteVariable(VarHandle var, Fn on_free, Context ctx) {
  ReadyList ready;
  {
    SpinLockGuard lock(push_lock_);
    Task* task = NewTask(nullptr, {.ctx = ctx, .name = "DeleteVariable"});
    task->kind = WorkKind::kDeletion;
    if (on_free) {
      task->function.emplace<Fn>(std::move(on_free));
      deletions_pending_.fetch_add(1);
    }
    Submit(task, {}, {&var, 1}, {}, &ready);
  }
  Dispatch(ready, nullptr);
}

bool ThreadedEngine::AwaitDeletion() {
  const bool inside = FunctionScope::Inside(this);
  const std::atomic<int64_t>& count = inside ? deletions_parked_ : deletions_pending_;
  deletion_waiters_.fetch_add(1);
  MutexLock lock(deletion_mutex_);
  const uint64_t run = deletions_run_.load();
  bool under_way = count.load() > 0;
  auto patience = kPatience;
  while (under_way && deletions_run_.load() == run) {
    if (inside || !WaitsForCallbacks()) {
      deletion_ran_.Wait(lock);
    } else if (patience.count() == 0 || given_up_at_ == callbacks_.load()) {
      given_up_at_ = callbacks_.load();
      under_way = false;
    } else {
      lock.Unlock();
      std::this_thread::sleep_for(kPause);
      patience -= kPause;
      lock.Lock();
    }
  }
  deletion_waiters_.fetch_sub(1);
  return under_way;
}

uint64_t ThreadedEngine::Version(VarHandle var) const {
  return Get(var)->version();
}

OprHandle ThreadedEngine::NewOperator(AsyncFn fn, Vars reads, Vars writes,
                                      const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  auto opr = std::make_unique<ThreadedOpr>();
  opr->pool = PoolFor(options.ctx, options.property, options.name);
  {
    SpinLockGuard lock(push_lock_);
    CheckDistinct(reads, writes, options.name);
  }
  opr->fn = std::move(fn);
  opr->reads.assign(reads.begin(), reads.end());
  opr->writes.assign(writes.begin(), writes.end());
  opr->options = options;
  opr->renews.assign(options.renews.begin(), options.renews.end());
  opr->options.renews = opr->renews;
  return oprs_.Add(std::move(opr));
}

void ThreadedEngine::Push(OprHandle handle, int priority) {
  auto* opr = static_cast<ThreadedOpr*>(handle);
  opr->uses.fetch_add(1, std::memory_order_relaxed);
  ReadyList ready;
  {
    SpinLockGuard lock(push_lock_);
    Task* task = NewTask(opr->pool, opr->options);
    task->priority = priority;
    task->opr = opr;
    Submit(task, opr->reads, opr->writes, opr->options.renews, &ready);
  }
  Dispatch(ready, nullptr);
}

void ThreadedEngine::DeleteOperator(OprHandle opr) {
  DropUse(static_cast<ThreadedOpr*>(opr));
}

SequenceHandle ThreadedEngine::NewSequence(std::vector<SequenceOp> ops, int num_ports) {
  std::vector<PortUse> port_uses = CheckSequence(ops, num_ports);
  std::vector<WorkerPool*> pools;
  for (const SequenceOp& op : ops) pools.push_back(PoolFor(op.ctx, op.property, op.name.c_str()));
  return sequences_.Add(
      std::make_unique<FrozenSequence>(std::move(ops), std::move(port_uses), pools));
}

void ThreadedEngine::SubmitRun(FrozenSequence& sequence, Vars ports, ReadyList* ready) {
  SequenceRun* run = sequence.TakeRun();
  run->Reset(next_order_);
  next_order_ += sequence.num_ops();
  CountPushed();
  for (int i = 0; i <= sequence.num_ports(); ++i) {
    if (sequence.port_use(i).ops.empty()) continue;
    SequencePortClaim& port = run->port(i);
    const bool is_token = i == sequence.num_ports();
    port.link.var = is_token ? &sequence.token() : Get(ports[i]);
    if (port.link.write && !is_token) port.link.var->CountWrite();
    if (port.link.var->Acquire(&port.link)) ready->Push(&port);
  }
}

void ThreadedEngine::Push(SequenceHandle handle, Vars ports) {
  auto* sequence = static_cast<FrozenSequence*>(handle);
  CheckPortCount(sequence->num_ports(), ports.size());
  ReadyList ready;
  {
    SpinLockGuard lock(push_lock_);
    CheckDistinct(ports, {}, "sequence");
    if (sequence->num_ops() == 0) return;
    sequence->uses.fetch_add(1, std::memory_order_relaxed);
    SubmitRun(*sequence, ports, &ready);
  }
  Dispatch(ready, nullptr);
}

void ThreadedEngine::DeleteSequence(SequenceHandle sequence) {
  DropUse(static_cast<FrozenSequence*>(sequence));
}

// ---- Waiting

FailureRef ThreadedEngine::WaitBehind(VarHandle var, bool write, bool takes, const char* what) {
  RefuseInsideFunction(this, what);
  Waiter waiter;
  waiter.kind = WorkKind::kWaiter;
  waiter.takes = takes;
  waiter.missing.store(1, std::memory_order_relaxed);
  waiter.link = {.var = Get(var), .claim = &waiter, .write = write};
  ReadyList ready;
  {
    SpinLockGuard lock(push_lock_);
    if (Get(var)->Acquire(&waiter.link)) ready.Push(&waiter);
  }
  Dispatch(ready, nullptr);
  MutexLock lock(waiter.mutex);
  while (!waiter.done) waiter.changed.Wait(lock);
  return waiter.taken;
}

uint64_t ThreadedEngine::next_order() {
  SpinLockGuard lock(push_lock_);
  return next_order_;
}

void ThreadedEngine::Wait(VarHandle var, bool write, const char* what) {
  const FailureRef failure = WaitBehind(var, write, true, what);
  if (!failure) return;
  unthrown_.Remove(failure, next_order());
  std::rethrow_exception(failure->error);
}

void ThreadedEngine::WaitToRead(VarHandle var) {
  Wait(var, false, "WaitToRead");
}
void ThreadedEngine::WaitForVar(VarHandle var) {
  Wait(var, true, "WaitForVar");
}
void ThreadedEngine::Drain(VarHandle var) {
  WaitBehind(var, true, false, "Drain");
}

void ThreadedEngine::WaitUntilIdle() {
  idle_waiters_.fetch_add(1);
  MutexLock lock(idle_mutex_);
  // `finished_` first: in this order, equal values mean that the counts were equal at one moment.
  const auto all_finished = [&] {
    const uint64_t finished = finished_.load();
    return finished == pushed_.load();
  };
  while (!all_finished()) idle_.Wait(lock);
  idle_waiters_.fetch_sub(1);
  lock.Unlock();
  if (!has_gpus_.load(std::memory_order_acquire)) return;
  for (auto& [kind, pool] : gpu_pools_) pool->lane()->Drain();
}

void ThreadedEngine::WaitForAll() {
  RefuseInsideFunction(this, "WaitForAll");
  WaitUntilIdle();
  if (std::exception_ptr error = unthrown_.RemoveAll(next_order())) std::rethrow_exception(error);
}

bool ThreadedEngine::AwaitEnd(uint64_t ended) {
  if (FunctionScope::Inside(this)) return false;
  idle_waiters_.fetch_add(1);
  MutexLock lock(idle_mutex_);
  while (finished_.load() == ended && !WaitsForCallbacks()) idle_.Wait(lock);
  idle_waiters_.fetch_sub(1);
  return finished_.load() != ended;
}

bool ThreadedEngine::WaitsForCallbacks() {
  const auto rest = [](const Pools& pools) {
    return std::all_of(pools.begin(), pools.end(), [](const auto& entry) {
      const WorkerPool& pool = *entry.second;
      return pool.Rests() && (!pool.lane() || pool.lane()->Rests());
    });
  };
  if (!rest(pools_)) return false;
  if (has_gpus_.load(std::memory_order_acquire) && !rest(gpu_pools_)) return false;
  MutexLock lock(logical_cpus_mutex_);
  return rest(logical_cpus_);
}

// Whoever counts itself as a waiter before it looks at this thread's pool or lane is seen here.
void ThreadedEngine::Rest() {
  if (idle_waiters_.load() > 0) {
    MutexLock lock(idle_mutex_);
    idle_.NotifyAll();
  }
  if (deletion_waiters_.load() > 0) {
    MutexLock lock(deletion_mutex_);
    deletion_ran_.NotifyAll();
  }
}

// ---- Traces

void ThreadedEngine::StartProfile() {
  profiler_.Start();
}

void ThreadedEngine::StopProfile(const std::string& path) {
  RefuseInsideFunction(this, "StopProfile");
  WaitUntilIdle();
  WriteFileAtomically(path, profiler_.Stop());
}

void ThreadedEngine::ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns,
                                 int64_t end_ns) {
  if (profiler_.on()) profiler_.Add(profiler_.Row(lane), name, 0, begin_ns, end_ns);
}

void ThreadedEngine::ProfileCounter(const std::string& name, int64_t value) {
  profiler_.AddCounter(name, value, SteadyNanoseconds());
}

}  // namespace mxtrain::engine
