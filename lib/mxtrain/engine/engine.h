#pragma once
// The dependency engine: runs functions on variables, in parallel where their reads and writes allow. It knows nothing of tensors.
//
// The one rule: two functions of which one mutates a variable that the other reads or mutates run in push order; all others may run
// together. Every push returns at once and may come from any thread; a push over several variables is atomic, so no cycle can arise.
//
// Errors: an exception of a function is kept on the variables that it was to write. A function that reads or mutates such a variable is
// skipped and passes the error on. The next wait on such a variable throws it once, as Error with the function's name in front, and clears
// it there. A worker never ends the process and the engine stays usable. Variables for which nobody waits keep the error, WaitForAll or
// not, for what they hold is still wrong; a function that writes the whole contents anew says so (`renews`), and an error that some wait
// has thrown ends there. One that no wait has thrown is passed on all the same: none is lost.
//
// Devices with streams: a function of such a device gives work to RunContext::stream and returns; its work is *issued* then, and *done*
// later. Whoever depends on it on the same stream begins its own issuing at once, on another stream lets the device wait, and on the host
// (functions of the CPU, deletions, waits) begins when the work is done. What such a function owns dies when it has returned: memory that
// its work reads or writes must be guarded by variables. Where a device fails later than at the call, the error comes out of the function
// that was the oldest not known to be done; every later function of that device fails, and the rest of the engine goes on.
//
// Handles (VarHandle, OprHandle, SequenceHandle) are owned by the engine; Delete* is legal while they are in use and is deferred until all
// that was pushed before has finished. The destructor waits for everything.
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

// Tells the engine that an asynchronous function has finished; callable once, from any thread. Dropped without a call, it completes the
// function with an error that names it.
class MXTRAIN_API Callback {
 public:
  Callback(Callback&& other) noexcept;
  Callback& operator=(Callback&& other) noexcept;
  ~Callback();
  void operator()(std::exception_ptr error = nullptr);

  // Made by engines only: `complete(token, error)` is called exactly once.
  using Complete = void (*)(void* token, std::exception_ptr error);
  Callback(Complete complete, void* token) : complete_(complete), token_(token) {}

 private:
  Complete complete_ = nullptr;
  void* token_ = nullptr;
};

using Fn = UniqueFunction<void(RunContext)>;
// Finished when the callback is called, never before. The body must not block: it hands the work to threads of its own.
using AsyncFn = UniqueFunction<void(RunContext, Callback)>;

// Chooses the workers: each device has some for compute, for copies each way; IO and communication have their own.
enum class FnProperty : uint8_t { kNormal, kCopyFromDevice, kCopyToDevice, kIO, kComm };

struct PushOptions {
  Context ctx = Context::cpu();
  FnProperty property = FnProperty::kNormal;
  int priority = 0;       // among functions that are ready on the same workers, higher runs first; equal ones in push order
  const char* name = "";  // for errors and traces; must live until the function has finished (a literal, or a string that its owner keeps)
  // Those of the written variables whose whole contents the function writes anew, whatever they were: an error that some wait has thrown
  // ends there. Copied by the push.
  std::span<const VarHandle> renews = {};
};

// An operation of a frozen sequence. Edges are given, not found: whoever makes a step knows which operations share bytes of an arena.
struct SequenceOp {
  std::string name;
  Context ctx = Context::cpu();
  FnProperty property = FnProperty::kNormal;
  int priority = 0;
  Fn fn;                     // called once for every push of the sequence; must stay valid for repeated calls
  std::vector<int> after;    // indices of earlier operations of this sequence
  std::vector<int> reads;    // ports
  std::vector<int> writes;   // ports
  std::vector<int> renews;   // those of `writes` whose variables are renewed, as by PushOptions, when the sequence acquires them
};

class MXTRAIN_API Engine {
 public:
  virtual ~Engine() = default;

  virtual VarHandle NewVar() = 0;
  // Frees the variable, and runs `on_free` (may be empty), after all that was pushed on it before.
  virtual void DeleteVariable(VarHandle var, Fn on_free, Context ctx) = 0;
  // For whoever needs what deletions free: waits until one that is under way has run its `on_free`, and says whether there was one to wait for.
  // Inside a function of the engine it waits only for those that nothing but issued work of devices holds up, so that it never waits for itself.
  virtual bool AwaitDeletion() = 0;
  // Number of writes that were pushed on the variable so far: equal versions mean equal contents.
  virtual uint64_t Version(VarHandle var) const = 0;

  // A variable that stands twice in one push (twice among the reads, the writes, or in both) is refused with kBug: callers use
  // DeduplicateVars. So is an empty function.
  virtual void PushSync(Fn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes, const PushOptions& options) = 0;
  virtual void PushAsync(AsyncFn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes, const PushOptions& options) = 0;

  // An operation whose lists are resolved once and that is pushed many times.
  virtual OprHandle NewOperator(AsyncFn fn, std::span<const VarHandle> reads, std::span<const VarHandle> writes,
                                const PushOptions& options) = 0;
  virtual void Push(OprHandle opr, int priority) = 0;
  virtual void DeleteOperator(OprHandle opr) = 0;

  // A step, resolved once. A push binds a variable to each port; every port is acquired before the first operation that names it and
  // released after the last one, so that what goes in and out overlaps with the rest. Two pushes of one sequence never overlap in time on
  // a common operation: the second's operation waits for the first's. Between two operations a lane may run a ready function of higher
  // priority. An operation that fails skips its successors and marks the ports that they and it were to write.
  virtual SequenceHandle NewSequence(std::vector<SequenceOp> ops, int num_ports) = 0;
  virtual void Push(SequenceHandle sequence, std::span<const VarHandle> ports) = 0;
  virtual void DeleteSequence(SequenceHandle sequence) = 0;

  // Waits; each throws the error that the variable carries. Called inside an engine function they throw kBug instead of locking up.
  virtual void WaitToRead(VarHandle var) = 0;  // for the writes pushed before
  virtual void WaitForVar(VarHandle var) = 0;  // for the reads and writes pushed before
  // For everything, callbacks included. Throws the first error in push order that no wait has thrown, and says how many more there were;
  // all of them have been thrown then. Variables keep theirs.
  virtual void WaitForAll() = 0;
  // For destructors: waits as WaitForVar does, and throws nothing that an engine function threw. Returns the error that the variable
  // carries where no wait has thrown it, which counts as thrown from now on; else null.
  virtual std::exception_ptr Drain(VarHandle var) = 0;

  // Trace of what ran where and when, between start and stop, as Chrome/Perfetto trace JSON.
  virtual void StartProfile() = 0;
  virtual void StopProfile(const std::string& path) = 0;  // waits for everything; throws kFileSystem
  // Adds a span of work done outside the engine (a decode thread) to the running trace; cheap when no trace runs. Times in nanoseconds of
  // std::chrono::steady_clock. `lane` names the row of the trace.
  virtual void ProfileSpan(const std::string& lane, const std::string& name, int64_t begin_ns, int64_t end_ns) = 0;
};

struct EngineOptions {
  std::string type = "threaded";  // or "naive": runs at push, in the caller; the oracle in tests and the debugging aid
  int cpu_workers = 1;            // compute lanes; one by default, with the whole OpenMP team (two teams at once fight over the cores)
  int io_workers = 1;
  int copy_workers = 1;           // each way
  // Number of GPUs, asked for at the first push to one; empty: none. Each has a worker with a stream for compute, for copies each way and for
  // communication.
  std::function<int()> gpu_count;
  // Called first on every worker thread: sets thread counts (Backend::EnterThread) before anything runs there.
  std::function<void(Context, FnProperty)> on_worker_start;
  // Makes the stream of a worker, on its thread; may be empty or return null: RunContext::stream is null then, and what the worker's functions
  // do is done when they return.
  std::function<std::unique_ptr<Stream>(Context, FnProperty)> new_stream;
};

// Throws kUsage for an unknown type.
MXTRAIN_API std::unique_ptr<Engine> Create(EngineOptions options = {});

// Makes a pair of lists legal for a push: removes repetitions, and from `reads` what `writes` holds.
MXTRAIN_API void DeduplicateVars(std::vector<VarHandle>* reads, std::vector<VarHandle>* writes);

}  // namespace mxtrain::engine
