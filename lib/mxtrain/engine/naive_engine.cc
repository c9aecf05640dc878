// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/naive_engine.h"

#include <atomic>
#include <limits>
#include <utility>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/engine/function_scope.h"
#include "mxtrain/engine/internal/handles.h"
#include "mxtrain/engine/internal/sequence_plan.h"

namespace mxtrain::engine {

struct NaiveEngine::NaiveVar : Var {
  void Renew(uint64_t push);  // at this position, by a function that overwrites the contents
  void Keep(const FailureRef& newer) {
    if (!failure) failure = newer;
  }

  std::atomic<uint64_t> version{0};
  FailureRef failure;  // why the contents are not valid
};

NaiveEngine::NaiveVar* NaiveEngine::Get(VarHandle var) {
  return static_cast<NaiveVar*>(var);
}

struct NaiveEngine::NaiveOpr : Opr {
  AsyncFn fn;
  std::vector<VarHandle> reads;
  std::vector<VarHandle> writes;
  std::vector<VarHandle> renews;
  PushOptions options;  // renews: those above
};

struct NaiveEngine::NaiveSequence : Sequence {
  std::vector<SequenceOp> ops;
  std::vector<PortUse> port_uses;
};

namespace {

using Vars = std::vector<VarHandle>;

Vars Copy(std::span<const VarHandle> vars) {
  return Vars(vars.begin(), vars.end());
}

void CheckPush(std::span<const VarHandle> reads, std::span<const VarHandle> writes,
               const PushOptions& options) {
  std::set<VarHandle> seen(reads.begin(), reads.end());
  seen.insert(writes.begin(), writes.end());
  if (seen.size() != reads.size() + writes.size()) ThrowRepeatedVar(options.name);
}

// Connects a function's callback to the push that waits for it.
struct Completion {
  Mutex mutex;
  ConditionVariable changed;
  bool done MXTRAIN_GUARDED_BY(mutex) = false;
  std::exception_ptr error MXTRAIN_GUARDED_BY(mutex);

  static void Complete(void* token, std::exception_ptr error) {
    auto* self = static_cast<Completion*>(token);
    MutexLock lock(self->mutex);
    self->done = true;
    self->error = std::move(error);
    self->changed.NotifyAll();
  }
};

// Waits for the work a function has issued.
void Finish(Stream* stream) {
  if (!stream) return;
  const std::unique_ptr<Event> event = stream->NewEvent();
  stream->Record(*event);
  event->Wait();
}

uint64_t NextSerial() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace

NaiveEngine::NaiveEngine(EngineOptions options)
    : options_(std::move(options)), serial_(NextSerial()) {}

NaiveEngine::~NaiveEngine() {
  MutexLock lock(mutex_);
  AwaitIdle(lock);
  // What their functions own may push on destruction.
  auto oprs = std::move(oprs_);
  auto sequences = std::move(sequences_);
  lock.Unlock();
}

void NaiveEngine::CheckContext(Context ctx, const char* name) {
  if (ctx.type != DeviceType::kGPU) return;
  if (!options_.gpu_count || ctx.id >= options_.gpu_count()) ThrowNoWorkers(ctx, name);
}

void NaiveEngine::Submit(Job job, std::span<const VarHandle> writes) {
  MutexLock lock(mutex_);
  if (!running_) EnterThread();
  for (VarHandle var : writes) Get(var)->version.fetch_add(1, std::memory_order_relaxed);
  queue_.emplace_back(next_push_++, std::move(job));
  if (running_) return;
  running_ = true;
  while (!queue_.empty()) {
    auto [push, next] = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    {
      FunctionScope scope(this);
      next(push);
      next = Job();
    }
    lock.Lock();
    ++ended_;
    idle_.NotifyAll();
  }
  running_ = false;
  idle_.NotifyAll();
}

void NaiveEngine::EnterThread() {
  // By serial of the engines that this thread has worked for.
  thread_local std::map<uint64_t, std::exception_ptr> entered;
  const auto [known, fresh] = entered.try_emplace(serial_);
  if (fresh && options_.on_worker_start) {
    try {
      options_.on_worker_start(Context::cpu(), FnProperty::kNormal);
    } catch (...) {
      known->second = std::current_exception();
    }
  }
  startup_error_ = known->second;
}

RunContext NaiveEngine::MakeRunContext(Context ctx, FnProperty property) {
  if (!options_.new_stream) return {ctx, nullptr};
  const LaneKind kind = LaneKindOf(ctx, property);
  std::unique_ptr<Stream>& stream = streams_[kind];
  if (!stream) stream = options_.new_stream(kind.ctx, kind.property);
  return {ctx, stream.get()};
}

FailureRef NaiveEngine::Try(Body& body, Context ctx, FnProperty property, int priority,
                            const char* name, uint64_t push) {
  try {
    if (startup_error_) std::rethrow_exception(startup_error_);
    ProfileScope span(profiler_, profiler_.on() ? profiler_.Row("caller") : 0, name, priority);
    const RunContext context = MakeRunContext(ctx, property);
    body(context);
    Finish(context.stream);
    return nullptr;
  } catch (...) {
    const auto failure = std::make_shared<Failure>(std::current_exception(), name, push);
    unthrown_.Add(failure);
    return failure;
  }
}

void NaiveEngine::NaiveVar::Renew(uint64_t push) {
  if (failure && failure->ThrownBefore(push)) failure = nullptr;
}

void NaiveEngine::RunFunction(Body& body, std::span<const VarHandle> reads,
                              std::span<const VarHandle> writes, const PushOptions& options,
                              uint64_t push) {
  for (VarHandle var : options.renews) Get(var)->Renew(push);
  FailureRef failure;
  for (const auto list : {reads, writes}) {
    for (VarHandle var : list) {
      if (!failure) failure = Get(var)->failure;
    }
  }
  if (!failure)
    failure = Try(body, options.ctx, options.property, options.priority, options.name, push);
  if (!failure) return;
  for (VarHandle var : writes) Get(var)->Keep(failure);
}

void NaiveEngine::RunToCallback(AsyncFn& fn, RunContext context) {
  Completion completion;
  std::exception_ptr error;
  const auto awaits_callback = [this](bool now) {
    MutexLock lock(mutex_);
    awaits_callback_ = now;
    idle_.NotifyAll();
  };
  try {
    fn(context, Callback(&Completion::Complete, &completion));
  } catch (...) {
    error = std::current_exception();
  }
  awaits_callback(true);
  {
    MutexLock lock(completion.mutex);
    while (!completion.done) completion.changed.Wait(lock);
    if (!error) error = completion.error;
  }
  awaits_callback(false);
  if (error) std::rethrow_exception(error);
}

VarHandle NaiveEngine::NewVar() {
  auto var = std::make_unique<NaiveVar>();
  VarHandle handle = var.get();
  MutexLock lock(mutex_);
  vars_.emplace(handle, std::move(var));
  return handle;
}

void NaiveEngine::DeleteVariable(VarHandle var, Fn on_free, Context ctx) {
  CheckContext(ctx, "DeleteVariable");
  Submit(
      [this, var, ctx, free = std::move(on_free)](uint64_t push) mutable {
        try {
          if (free) free(RunContext{ctx, nullptr});
        } catch (...) {
          unthrown_.Add(
              std::make_shared<Failure>(std::current_exception(), "DeleteVariable", push));
        }
        MutexLock lock(mutex_);
        vars_.erase(var);
      },
      {});
}

// Jobs are synchronous, so only another thread's queue can hold a pending deletion.
bool NaiveEngine::AwaitDeletion() {
  if (FunctionScope::Inside(this)) return false;
  MutexLock lock(mutex_);
  const bool under_way = running_;
  while (running_ && !awaits_callback_) idle_.Wait(lock);
  return under_way && !running_;
}

uint64_t NaiveEngine::Ended() const {
  MutexLock lock(mutex_);
  return ended_;
}

bool NaiveEngine::AwaitEnd(uint64_t ended) {
  if (FunctionScope::Inside(this)) return false;
  MutexLock lock(mutex_);
  while (ended_ == ended && running_ && !awaits_callback_) idle_.Wait(lock);
  return ended_ != ended;
}

uint64_t NaiveEngine::Version(VarHandle var) const {
  return Get(var)->version.load(std::memory_order_relaxed);
}

void NaiveEngine::PushSync(Fn fn, std::span<const VarHandle> reads,
                           std::span<const VarHandle> writes, const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  CheckContext(options.ctx, options.name);
  CheckPush(reads, writes, options);
  Submit(
      [this, fn = std::move(fn), r = Copy(reads), w = Copy(writes), renewed = Copy(options.renews),
       own = options](uint64_t push) mutable {
        own.renews = renewed;
        RunFunction(fn, r, w, own, push);
      },
      writes);
}

void NaiveEngine::PushAsync(AsyncFn fn, std::span<const VarHandle> reads,
                            std::span<const VarHandle> writes, const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  PushSync([this, fn = std::move(fn)](RunContext context) mutable { RunToCallback(fn, context); },
           reads, writes, options);
}

OprHandle NaiveEngine::NewOperator(AsyncFn fn, std::span<const VarHandle> reads,
                                   std::span<const VarHandle> writes, const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  CheckContext(options.ctx, options.name);
  CheckPush(reads, writes, options);
  auto opr = std::make_shared<NaiveOpr>();
  opr->fn = std::move(fn);
  opr->reads = Copy(reads);
  opr->writes = Copy(writes);
  opr->renews = Copy(options.renews);
  opr->options = options;
  opr->options.renews = opr->renews;
  MutexLock lock(mutex_);
  oprs_.emplace(opr.get(), opr);
  return opr.get();
}

void NaiveEngine::Push(OprHandle handle, int priority) {
  std::shared_ptr<NaiveOpr> opr;
  {
    MutexLock lock(mutex_);
    opr = oprs_.at(handle);
  }
  Submit(
      [this, opr, priority](uint64_t push) {
        PushOptions options = opr->options;
        options.priority = priority;
        Body body = [&](RunContext context) { RunToCallback(opr->fn, context); };
        RunFunction(body, opr->reads, opr->writes, options, push);
      },
      opr->writes);
}

void NaiveEngine::DeleteOperator(OprHandle handle) {
  std::shared_ptr<NaiveOpr> last;
  MutexLock lock(mutex_);
  last = std::move(oprs_.at(handle));
  oprs_.erase(handle);
}

SequenceHandle NaiveEngine::NewSequence(std::vector<SequenceOp> ops, int num_ports) {
  auto sequence = std::make_shared<NaiveSequence>();
  sequence->port_uses = CheckSequence(ops, num_ports);
  for (const SequenceOp& op : ops) CheckContext(op.ctx, op.name.c_str());
  sequence->ops = std::move(ops);
  MutexLock lock(mutex_);
  sequences_.emplace(sequence.get(), sequence);
  return sequence.get();
}

void NaiveEngine::Push(SequenceHandle handle, std::span<const VarHandle> ports) {
  std::shared_ptr<NaiveSequence> sequence;
  {
    MutexLock lock(mutex_);
    sequence = sequences_.at(handle);
  }
  CheckPortCount(sequence->port_uses.size(), ports.size());
  CheckPush(ports, {}, {.name = "sequence"});
  Vars written;
  for (size_t port = 0; port < ports.size(); ++port) {
    if (sequence->port_uses[port].written) written.push_back(ports[port]);
  }
  Submit(
      [this, sequence, vars = Copy(ports)](uint64_t push) { RunSequence(*sequence, vars, push); },
      written);
}

void NaiveEngine::DeleteSequence(SequenceHandle handle) {
  std::shared_ptr<NaiveSequence> last;
  MutexLock lock(mutex_);
  last = std::move(sequences_.at(handle));
  sequences_.erase(handle);
}

// Of several failures that reach an operation or a port, the one of lowest rank wins: ports before
// operations, then by index.
void NaiveEngine::RunSequence(NaiveSequence& sequence, std::span<const VarHandle> ports,
                              uint64_t push) {
  struct Ranked {
    size_t rank = std::numeric_limits<size_t>::max();
    FailureRef failure;
    void Offer(const Ranked& other) {
      if (other.failure && other.rank < rank) *this = other;
    }
  };
  const size_t num_ports = ports.size();
  std::vector<Ranked> arriving(num_ports), leaving(num_ports), of_op(sequence.ops.size());
  for (size_t port = 0; port < num_ports; ++port) {
    if (sequence.port_uses[port].renewed) Get(ports[port])->Renew(push);
    if (!sequence.port_uses[port].ops.empty()) arriving[port] = {port, Get(ports[port])->failure};
  }
  for (size_t i = 0; i < sequence.ops.size(); ++i) {
    SequenceOp& op = sequence.ops[i];
    Ranked& first = of_op[i];
    for (int port : op.reads) first.Offer(arriving[port]);
    for (int port : op.writes) first.Offer(arriving[port]);
    for (int earlier : op.after) first.Offer(of_op[earlier]);
    if (!first.failure)
      first = {num_ports + i, Try(op.fn, op.ctx, op.property, op.priority, op.name.c_str(), push)};
    for (int port : op.writes) leaving[port].Offer(first);
  }
  for (size_t port = 0; port < num_ports; ++port) {
    if (leaving[port].failure) Get(ports[port])->Keep(leaving[port].failure);
  }
}

void NaiveEngine::AwaitIdle(MutexLock& lock) {
  while (running_) idle_.Wait(lock);
}

void NaiveEngine::Wait(VarHandle var, const char* what) {
  RefuseInsideFunction(this, what);
  MutexLock lock(mutex_);
  AwaitIdle(lock);
  const FailureRef failure = std::exchange(Get(var)->failure, nullptr);
  if (!failure) return;
  unthrown_.Remove(failure, next_push_);
  lock.Unlock();
  std::rethrow_exception(failure->error);
}

void NaiveEngine::WaitToRead(VarHandle var) {
  Wait(var, "WaitToRead");
}
void NaiveEngine::WaitForVar(VarHandle var) {
  Wait(var, "WaitForVar");
}
void NaiveEngine::WaitForAll() {
  RefuseInsideFunction(this, "WaitForAll");
  MutexLock lock(mutex_);
  AwaitIdle(lock);
  const std::exception_ptr error = unthrown_.RemoveAll(next_push_);
  lock.Unlock();
  if (error) std::rethrow_exception(error);
}
void NaiveEngine::Drain(VarHandle) {
  RefuseInsideFunction(this, "Drain");
  MutexLock lock(mutex_);
  AwaitIdle(lock);
}

void NaiveEngine::StartProfile() {
  profiler_.Start();
}

void NaiveEngine::StopProfile(const std::string& path) {
  RefuseInsideFunction(this, "StopProfile");
  {
    MutexLock lock(mutex_);
    AwaitIdle(lock);
  }
  WriteFileAtomically(path, profiler_.Stop());
}

void NaiveEngine::ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns,
                              int64_t end_ns) {
  if (profiler_.on()) profiler_.Add(profiler_.Row(lane), name, 0, begin_ns, end_ns);
}

void NaiveEngine::ProfileCounter(const std::string& name, int64_t value) {
  profiler_.AddCounter(name, value, SteadyNanoseconds());
}

}  // namespace mxtrain::engine
