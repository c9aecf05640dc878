// SPDX-License-Identifier: Apache-2.0
#pragma once
// The dependency engine: runs functions on variables, in parallel where their reads and writes
// allow. It knows nothing of tensors.
//
// The one rule: two functions run in push order if one mutates a variable that the other reads or
// mutates; all others may run concurrently. Every push returns at once and may come from any
// thread; a push over several variables is atomic, so no cycle can arise.
//
// Errors: an exception thrown by a function is kept on the variables it writes. A function that
// reads or mutates such a variable is skipped and passes the error on. The next wait on such a
// variable throws it once, as an Error prefixed with the function's name, and clears it there. A
// worker never terminates the process and the engine stays usable. Variables that nobody waits for
// keep the error, even after WaitForAll, since their contents are still invalid; a function that
// overwrites the whole contents says so (`renews`), which clears an error that some wait had thrown
// before the push. An error that no wait has thrown is still passed on: none is lost. The whole
// model is a page of lib/docs/engine.md.
//
// Devices with streams: a function submits work to RunContext::stream and returns; its work is then
// *issued*, and *done* later. Dependants on the same stream start issuing at once, those on another
// stream make the device wait, and those on the host (CPU functions, deletions, waits) start when
// the work is done. Whatever such a function owns is destroyed when it returns: memory that its
// work accesses must be guarded by variables. If a device fails after the call, the error is
// attributed to the oldest function not known to be done; every later function of that device
// fails, and the rest of the engine continues.
//
// Handles (VarHandle, OprHandle, SequenceHandle) are owned by the engine; Delete* may be called
// while they are in use and is deferred until everything pushed before has finished. The destructor
// waits for everything.
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/macros.h"
#include "mxtrain/base/unique_function.h"
#include "mxtrain/device/context.h"

namespace mxtrain::engine {

class Var;
class Opr;
class Sequence;
using VarHandle = Var*;
using OprHandle = Opr*;
using SequenceHandle = Sequence*;

// Tells the engine that an asynchronous function has finished. Call once, from any thread. If
// destroyed without a call, the function completes with an error that names it.
class MXTRAIN_API Callback {
 public:
  Callback(Callback&& other) noexcept;
  Callback& operator=(Callback&& other) noexcept;
  ~Callback();
  void operator()(std::exception_ptr error = nullptr);

  // Created by engines only: `complete(token, error)` is called exactly once.
  using Complete = void (*)(void* token, std::exception_ptr error);
  Callback(Complete complete, void* token) : complete_(complete), token_(token) {}

 private:
  Complete complete_ = nullptr;
  void* token_ = nullptr;
};

using Fn = UniqueFunction<void(RunContext)>;
// Finished when the callback is called, never before. The body must not block: it hands its work to
// its own threads.
using AsyncFn = UniqueFunction<void(RunContext, Callback)>;

// Selects the workers: each device has workers for compute and for copies in each direction; IO and
// communication have their own.
enum class FnProperty : uint8_t { kNormal, kCopyFromDevice, kCopyToDevice, kIO, kComm };
// "compute", "copy from device", "copy to device", "io", "communication".
MXTRAIN_API const char* NameOf(FnProperty property);

struct PushOptions {
  Context ctx = Context::cpu();
  FnProperty property = FnProperty::kNormal;
  // Of ready functions on the same workers the highest runs first; ties in push order.
  int priority = 0;
  // For errors and traces; must outlive the function (a literal or an owned string).
  const char* name = "";
  // The written variables whose whole contents the function overwrites, regardless of what they
  // were: clears an error that some wait had thrown before this push. Copied by the push.
  std::span<const VarHandle> renews = {};
};

// An operation of a frozen sequence. Edges are given, not inferred: the creator of a step knows
// which operations share bytes of an arena.
struct SequenceOp {
  std::string name;
  Context ctx = Context::cpu();
  FnProperty property = FnProperty::kNormal;
  int priority = 0;
  Fn fn;  // called once for every push of the sequence; must stay valid for repeated calls
  std::vector<int> after;   // indices of earlier operations of this sequence
  std::vector<int> reads;   // ports
  std::vector<int> writes;  // ports
  std::vector<int> renews;  // subset of `writes`: renewed as in PushOptions when acquired
};

class MXTRAIN_API Engine {
 public:
  virtual ~Engine() = default;

  virtual VarHandle NewVar() = 0;
  // Frees the variable and runs `on_free` (may be empty) after everything pushed on it before.
  virtual void DeleteVariable(VarHandle var, Fn on_free, Context ctx) = 0;
  // For callers that need what deletions free: waits until one pending deletion has run its
  // `on_free`; returns whether there was one. Inside an engine function it waits only for deletions
  // held up solely by issued device work, so it never waits for itself. It gives up, with false,
  // when for two seconds nothing could end before the callback of an asynchronous function was
  // called, which the caller may have to do; then it gives up at once until one is called.
  virtual bool AwaitDeletion() = 0;
  // Number of writes pushed on the variable so far: equal versions mean equal contents.
  virtual uint64_t Version(VarHandle var) const = 0;

  // A variable that appears twice in one push (in the reads, the writes, or both) throws kBug: use
  // DeduplicateVars. So does an empty function.
  virtual void PushSync(Fn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes,
                        const PushOptions& options) = 0;
  virtual void PushAsync(AsyncFn fn, std::span<const VarHandle> reads,
                         std::span<const VarHandle> writes, const PushOptions& options) = 0;

  // An operation whose lists are resolved once and which is pushed many times.
  virtual OprHandle NewOperator(AsyncFn fn, std::span<const VarHandle> reads,
                                std::span<const VarHandle> writes, const PushOptions& options) = 0;
  virtual void Push(OprHandle opr, int priority) = 0;
  virtual void DeleteOperator(OprHandle opr) = 0;

  // A step, resolved once. A push binds a variable to each port; every port is acquired before the
  // first operation that names it and released after the last, so inputs and outputs overlap with
  // the rest. Two pushes of one sequence never overlap on a common operation: the second's
  // operation waits for the first's. Between two operations a lane may run a ready function of
  // higher priority. A failed operation skips its successors and marks the ports that it and they
  // would have written.
  virtual SequenceHandle NewSequence(std::vector<SequenceOp> ops, int num_ports) = 0;
  virtual void Push(SequenceHandle sequence, std::span<const VarHandle> ports) = 0;
  virtual void DeleteSequence(SequenceHandle sequence) = 0;

  // Waits; each throws the error that the variable carries. Inside an engine function they throw
  // kBug instead of deadlocking.
  virtual void WaitToRead(VarHandle var) = 0;  // for the writes pushed before
  virtual void WaitForVar(VarHandle var) = 0;  // for the reads and writes pushed before
  // For everything, callbacks included. Throws the first error in push order that no wait has
  // thrown, with the number of further ones, which then all count as thrown. Variables keep theirs.
  virtual void WaitForAll() = 0;
  // For destructors: waits like WaitForVar, but leaves errors where they are and throws none.
  virtual void Drain(VarHandle var) = 0;

  // Traces what ran where and when between start and stop, as Chrome/Perfetto trace JSON. Stop
  // waits for everything and throws kFileSystem.
  virtual void StartProfile() = 0;
  virtual void StopProfile(const std::string& path) = 0;
  // Adds a span of work done outside the engine (a decode thread) to the running trace; cheap when
  // tracing is off. Times in nanoseconds of std::chrono::steady_clock. `lane` names the row of the
  // trace.
  virtual void ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns,
                           int64_t end_ns) = 0;
  // Adds the present value of a counter to the running trace, as a track of its own.
  virtual void ProfileCounter(const std::string& name, int64_t value) = 0;

  // For callers that bound what is pending: the number of pushes that have ended, and a wait until
  // it is no longer `ended`. False, at once, if nothing can end before the callback of an
  // asynchronous function is called, or inside an engine function, which would wait for itself.
  virtual uint64_t Ended() const = 0;
  virtual bool AwaitEnd(uint64_t ended) = 0;
};

struct EngineOptions {
  // Or "naive": runs at push, in the caller; for tests and debugging.
  std::string type = "threaded";
  // Workers of the compute lane. Their OpenMP teams would compete for the cores: whoever creates
  // the engine divides the cores among them (on_worker_start). Each logical CPU device, cpu(1) and
  // so on, has as many of its own, from its first use.
  int cpu_workers = 1;
  int io_workers = 1;
  int copy_workers = 1;  // each direction
  // Number of GPUs, queried at the first push to one; empty: none. Each has one worker with a
  // stream for compute, for copies in each direction and for communication.
  std::function<int()> gpu_count;
  // Called first on every worker thread: sets thread counts (Backend::EnterThread) before anything
  // runs there.
  std::function<void(Context, FnProperty)> on_worker_start;
  // Creates a worker's stream, on its thread. May be empty or return null: RunContext::stream is
  // then null and the worker's functions are synchronous.
  std::function<std::unique_ptr<Stream>(Context, FnProperty)> new_stream;
};

// Throws kUsage for an unknown type.
MXTRAIN_API std::unique_ptr<Engine> Create(EngineOptions options = {});

// Makes two lists valid for a push: removes duplicates, and from `reads` what `writes` contains.
MXTRAIN_API void DeduplicateVars(std::vector<VarHandle>* reads, std::vector<VarHandle>* writes);

}  // namespace mxtrain::engine
