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
  std::atomic<uint64_t> version{0};
  KeptError error;
};

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
  for (VarHandle var : writes)
    static_cast<NaiveVar*>(var)->version.fetch_add(1, std::memory_order_relaxed);
  queue_.push_back(std::move(job));
  if (running_) return;
  running_ = true;
  while (!queue_.empty()) {
    Job next = std::move(queue_.front());
    queue_.pop_front();
    lock.Unlock();
    {
      FunctionScope scope(this);
      next();
      next = Job();
    }
    lock.Lock();
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

std::exception_ptr NaiveEngine::Try(Body& body, Context ctx, FnProperty property, int priority,
                                    const char* name) {
  try {
    if (startup_error_) std::rethrow_exception(startup_error_);
    ProfileScope span(profiler_, profiler_.on() ? profiler_.Row("caller") : 0, name, priority);
    const RunContext context = MakeRunContext(ctx, property);
    body(context);
    Finish(context.stream);
    return nullptr;
  } catch (...) {
    std::exception_ptr error = NameError(std::current_exception(), name);
    ledger_.Enter(error, num_failures_++);
    return error;
  }
}

void NaiveEngine::RunFunction(Body& body, std::span<const VarHandle> reads,
                              std::span<const VarHandle> writes, const PushOptions& options) {
  std::exception_ptr error;
  for (VarHandle var : options.renews) static_cast<NaiveVar*>(var)->error.Renew(ledger_);
  for (const auto list : {reads, writes}) {
    for (VarHandle var : list) {
      if (!error) error = static_cast<NaiveVar*>(var)->error.Get();
    }
  }
  if (!error) error = Try(body, options.ctx, options.property, options.priority, options.name);
  if (!error) return;
  for (VarHandle var : writes) static_cast<NaiveVar*>(var)->error.Keep(error);
}

void NaiveEngine::RunToCallback(AsyncFn& fn, RunContext context) {
  Completion completion;
  std::exception_ptr error;
  try {
    fn(context, Callback(&Completion::Complete, &completion));
  } catch (...) {
    error = std::current_exception();
  }
  MutexLock lock(completion.mutex);
  while (!completion.done) completion.changed.Wait(lock);
  if (!error) error = completion.error;
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
      [this, var, ctx, free = std::move(on_free)]() mutable {
        try {
          if (free) free(RunContext{ctx, nullptr});
        } catch (...) {
          ledger_.Enter(NameError(std::current_exception(), "DeleteVariable"), num_failures_++);
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
  AwaitIdle(lock);
  return under_way;
}

uint64_t NaiveEngine::Version(VarHandle var) const {
  return static_cast<NaiveVar*>(var)->version.load(std::memory_order_relaxed);
}

void NaiveEngine::PushSync(Fn fn, std::span<const VarHandle> reads,
                           std::span<const VarHandle> writes, const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  CheckContext(options.ctx, options.name);
  CheckPush(reads, writes, options);
  Submit(
      [this, fn = std::move(fn), r = Copy(reads), w = Copy(writes), renewed = Copy(options.renews),
       own = options]() mutable {
        own.renews = renewed;
        RunFunction(fn, r, w, own);
      },
      writes);
}

void NaiveEngine::PushAsync(AsyncFn fn, std::span<const VarHandle> reads,
                            std::span<const VarHandle> writes, const PushOptions& options) {
  if (!fn) ThrowNoFunction(options.name);
  PushSync([fn = std::move(fn)](RunContext context) mutable { RunToCallback(fn, context); }, reads,
           writes, options);
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
      [this, opr, priority] {
        PushOptions options = opr->options;
        options.priority = priority;
        Body body = [&](RunContext context) { RunToCallback(opr->fn, context); };
        RunFunction(body, opr->reads, opr->writes, options);
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
  Submit([this, sequence, vars = Copy(ports)] { RunSequence(*sequence, vars); }, written);
}

void NaiveEngine::DeleteSequence(SequenceHandle handle) {
  std::shared_ptr<NaiveSequence> last;
  MutexLock lock(mutex_);
  last = std::move(sequences_.at(handle));
  sequences_.erase(handle);
}

// Of several errors that reach an operation or a port, the one of lowest rank wins: ports before
// operations, then by index.
void NaiveEngine::RunSequence(NaiveSequence& sequence, std::span<const VarHandle> ports) {
  struct Ranked {
    size_t rank = std::numeric_limits<size_t>::max();
    std::exception_ptr error;
    void Offer(const Ranked& other) {
      if (other.error && other.rank < rank) *this = other;
    }
  };
  const size_t num_ports = ports.size();
  std::vector<Ranked> arriving(num_ports), leaving(num_ports), of_op(sequence.ops.size());
  for (size_t port = 0; port < num_ports; ++port) {
    if (sequence.port_uses[port].renewed) static_cast<NaiveVar*>(ports[port])->error.Renew(ledger_);
    if (!sequence.port_uses[port].ops.empty())
      arriving[port] = {port, static_cast<NaiveVar*>(ports[port])->error.Get()};
  }
  for (size_t i = 0; i < sequence.ops.size(); ++i) {
    SequenceOp& op = sequence.ops[i];
    Ranked& error = of_op[i];
    for (int port : op.reads) error.Offer(arriving[port]);
    for (int port : op.writes) error.Offer(arriving[port]);
    for (int earlier : op.after) error.Offer(of_op[earlier]);
    if (!error.error)
      error = {num_ports + i, Try(op.fn, op.ctx, op.property, op.priority, op.name.c_str())};
    for (int port : op.writes) leaving[port].Offer(error);
  }
  for (size_t port = 0; port < num_ports; ++port) {
    if (leaving[port].error) static_cast<NaiveVar*>(ports[port])->error.Keep(leaving[port].error);
  }
}

void NaiveEngine::AwaitIdle(MutexLock& lock) {
  while (running_) idle_.Wait(lock);
}

std::exception_ptr NaiveEngine::TakeErrorBehind(VarHandle var, const char* what) {
  RefuseInsideFunction(this, what);
  MutexLock lock(mutex_);
  AwaitIdle(lock);
  return static_cast<NaiveVar*>(var)->error.Take();
}

void NaiveEngine::Wait(VarHandle var, const char* what) {
  const std::exception_ptr error = TakeErrorBehind(var, what);
  if (!error) return;
  ledger_.StrikeOut(error);
  std::rethrow_exception(error);
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
  const std::exception_ptr error = ledger_.TakeFirstAndClear();
  lock.Unlock();
  if (error) std::rethrow_exception(error);
}
std::exception_ptr NaiveEngine::Drain(VarHandle var) {
  const std::exception_ptr error = TakeErrorBehind(var, "Drain");
  return error && ledger_.StrikeOut(error) ? error : nullptr;
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
