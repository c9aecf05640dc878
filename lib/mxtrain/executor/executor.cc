// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/executor.h"

#include <algorithm>
#include <array>
#include <atomic>

#include "mxtrain/base/error.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/base/recycler.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/engine/function_scope.h"
#include "mxtrain/executor/internal/namesakes.h"
#include "mxtrain/executor/internal/run_inputs.h"
#include "mxtrain/executor/internal/step_sequences.h"
#include "mxtrain/operator/host_kernel.h"

namespace mxtrain {
namespace {

using executor::ArrayMap;
using executor::GradReq;
using executor::RunInputs;
using executor::StepSequences;

const NDArray& Lookup(const ArrayMap& arrays, std::string_view name, const char* what) {
  const auto found = arrays.find(std::string(name));
  if (found != arrays.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, array] : arrays) known.push_back(key);
  Throw(ErrorKind::kConfig, "the net has no {} '{}'{}", what, name, DidYouMean(name, known));
}

void CheckGiven(const ArrayMap& arrays, const std::string& name, const char* what) {
  if (arrays.contains(name)) return;
  std::vector<std::string> given;
  for (const auto& [key, array] : arrays) given.push_back(key);
  Throw(ErrorKind::kConfig, "no {} '{}' was given to Bind{}", what, name, DidYouMean(name, given));
}

// Shapes, types and layouts of existing arrays.
void AdoptSpecs(const ArrayMap& arrays, Executor::BindRequest* request) {
  for (const auto& [name, array] : arrays) {
    TShape asked = request->shapes[name];
    const auto type = request->types.find(name);
    if (!MergeShape(array.shape(), &asked) ||
        (type != request->types.end() && type->second != array.dtype())) {
      Throw(ErrorKind::kConfig, "array '{}' is {} {}; {} {} was requested", name,
            NameOf(array.dtype()), array.shape().ToString(),
            type != request->types.end() ? NameOf(type->second) : "shape",
            request->shapes[name].ToString());
    }
    request->shapes[name] = array.shape();
    request->types[name] = array.dtype();
    request->layouts[name] = array.layout();
  }
}

// Shared by executors that never run concurrently; grows on demand. Used by the thread that pushes
// their runs, except by destructors, which functions of the engine may call meanwhile. Errors of a
// run stay on its variable until the next forward pass overwrites the bytes.
struct Arena {
  NDArray bytes;                         // of the net's device; its variable orders the runs
  std::map<Context, NDArray> elsewhere;  // of the devices of groups
  // The executor with a pending Backward on this arena; null: none.
  std::atomic<const void*> forward_of = nullptr;

  // Throws kConfig if it is on another device.
  void Grow(Runtime& runtime, Context ctx, const executor::MemoryPlan& plan) {
    if (!bytes.empty() && bytes.ctx() != ctx) {
      Throw(ErrorKind::kConfig,
            "executors on {} and {} cannot share an arena; bind one of them without `shared`",
            bytes.ctx().ToString(), ctx.ToString());
    }
    int64_t own = 0;
    for (const executor::ArenaPlan& planned : plan.arenas) {
      if (planned.ctx == ctx) own = planned.bytes;
    }
    for (const executor::ArenaPlan& planned : plan.arenas) {
      if (planned.ctx != ctx) Grow(runtime, planned.ctx, planned.bytes, &elsewhere[planned.ctx]);
    }
    Grow(runtime, ctx, own, &bytes);
  }

  NDArray& On(Context ctx) { return ctx == bytes.ctx() ? bytes : elsewhere.at(ctx); }

  // From any thread. What is pushed on it follows all runs so far.
  NDArray Runs() const {
    const MutexLock lock(mutex_);
    return bytes;
  }

 private:
  void Grow(Runtime& runtime, Context ctx, int64_t size, NDArray* array) {
    const int64_t before = array->empty() ? 0 : array->shape().Size();
    if (!array->empty() && before >= size) return;
    forward_of = nullptr;
    try {
      Replace(runtime, ctx, size, array);
    } catch (...) {
      if (before > 0) Replace(runtime, ctx, before, array);  // for the executors that share it
      throw;
    }
  }

  // The runs in flight are ordered only by the old `bytes`: what is pushed on the new array follows
  // them, and so does the deletion of the old one.
  void Replace(Runtime& runtime, Context ctx, int64_t size, NDArray* array) {
    const NDArray replacement(runtime, TShape{size}, DType::kUint8, ctx, Layout(), "arena");
    std::vector<engine::VarHandle> none, old;
    if (!bytes.empty()) old.push_back(bytes.var());
    if (!array->empty()) old.push_back(array->var());
    engine::DeduplicateVars(&none, &old);
    if (!old.empty()) Follow(runtime.engine(), ctx, old, replacement.var());
    {
      const MutexLock lock(mutex_);
      *array = replacement;
    }
    array->data();  // now, so binding fails if memory is exhausted
  }

  // Waits too, so that both arrays never exist at once; but not inside a function of the engine, or
  // while nothing but callbacks, which the caller may have to call, can end the runs.
  static void Follow(engine::Engine& engine, Context ctx, const std::vector<engine::VarHandle>& old,
                     engine::VarHandle next) {
    auto token = std::make_shared<char>();
    const std::weak_ptr<void> pending = token;  // until the function has run
    std::vector<engine::VarHandle> writes = old;
    writes.push_back(next);
    engine.PushSync([token = std::move(token)](RunContext) {}, {}, writes,
                    {.ctx = ctx, .priority = executor::kStepPriority, .name = "arena"});
    if (engine::FunctionScope::Inside(&engine)) return;
    for (uint64_t ended = engine.Ended(); !pending.expired(); ended = engine.Ended()) {
      if (!engine.AwaitEnd(ended) && !pending.expired()) return;
    }
    for (engine::VarHandle var : old) engine.Drain(var);
  }

  mutable Mutex mutex_;  // for writes of `bytes`, and for reads by destructors
};

// The arrays of one run.
struct Run {
  RunInputs inputs;
  std::vector<NDArray> arenas;  // in the order of the plan
  RandomState random;
  executor::Precomputation precomputation;
  Executor::Monitor monitor;

  void Clear() {
    inputs.clear();
    arenas.clear();
    monitor = nullptr;
  }
};

}  // namespace

struct Executor::Impl {
  Impl(Runtime& r, const Symbol& s, BindRequest q, executor::BoundArrays given,
       std::shared_ptr<Arena> shared, const executor::Namesakes* shared_draws);

  // Binds to the given arrays and allocates the missing ones.
  static std::unique_ptr<Executor> Make(Runtime& runtime, const Symbol& symbol, BindRequest request,
                                        executor::BoundArrays given, Executor* shared);
  void LogBinding() const;
  void Prepare(Recycler<Run>::Lease run, bool forward);
  // Inputs on other devices are copied, on a copy stream, into permanent arrays.
  void Stage(RunInputs* inputs);
  void Push(StepSequences::Part part) { sequences->Push(part, arena->bytes.var()); }

  Runtime& runtime;
  const Symbol symbol;
  const BindRequest request;
  const executor::ExecGraph graph;
  const executor::MemoryPlan plan;
  executor::BoundArrays arrays;
  std::vector<std::string> input_names;
  std::shared_ptr<Arena> arena;
  std::vector<void*>
      resolved_arenas;  // in the order of the plan; used by bind_inputs, ordered by the arena

  executor::StepState state;
  RandomSteps random{runtime.resources()};
  Monitor monitor;
  int monitor_every = 1;
  uint64_t monitor_runs = 0;
  bool monitored = false;  // of the last forward pass and its Backward

  executor::ExternalBuffers externals;
  std::unique_ptr<StepSequences> sequences;
  Recycler<Run> runs;
  std::vector<NDArray> kept_inputs;  // until the run is pushed; of a Forward, until its Backward
  size_t continued = 0;              // pieces of the present step that were pushed
  // By external buffer. Two alternating sets: while one run reads one, the next batch is copied to
  // the other.
  std::array<std::map<int, NDArray>, 2> staged;
  size_t stage = 0;
};

Executor::Impl::Impl(Runtime& r, const Symbol& s, BindRequest q, executor::BoundArrays given,
                     std::shared_ptr<Arena> shared, const executor::Namesakes* shared_draws)
    : runtime(r),
      symbol(s),
      request(std::move(q)),
      graph(executor::RunPasses(symbol.graph(), request, runtime)),
      plan(executor::PlanMemory(graph, request, executor::Strategy::kFull)),
      arrays(std::move(given)),
      arena(std::move(shared)),
      externals(runtime, graph, plan, request, &arrays) {
  for (int id : graph.arguments) {
    if (request.inputs.contains(graph.nodes[id].name)) input_names.push_back(graph.nodes[id].name);
  }
  arena->Grow(runtime, request.ctx, plan);
  resolved_arenas.resize(plan.arenas.size());
  state.replica = request.replica;
  state.namesakes = executor::NumberNamesakes(runtime, graph, plan, request, shared_draws);
  sequences = std::make_unique<StepSequences>(runtime, graph, plan, externals, request, state);
  LogBinding();
}

void Executor::Impl::LogBinding() const {
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const executor::ExecNode& node = graph.nodes[i];
    if (plan.runs[i] && node.plan && RunsOnHost(*node.plan))
      LogHostKernel(runtime, node.ctx, node.op->TypeString(),
                    node.where.empty() ? format("layer '{}'", node.name)
                                       : format("layer '{}', {}", node.name, node.where));
  }
  const Logger log = runtime.log("executor");
  if (!log.Enabled(LogLevel::kDebug)) return;
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const executor::ExecNode& node = graph.nodes[i];
    if (node.plan && node.forward < 0 && plan.runs[i])
      log.Debug("{} ({}): kernel {}", node.name, node.op->TypeString(), node.plan->kernel);
  }
  log.Debug("{} of {} nodes are executed; arena {}, lower bound {}",
            std::count(plan.runs.begin(), plan.runs.end(), true), plan.runs.size(),
            FormatBytes(plan.arena_bytes), FormatBytes(plan.lower_bound));
}

void Executor::Impl::Stage(RunInputs* inputs) {
  for (auto& [external, array] : *inputs) {
    const Context device = externals[external].ctx;
    if (executor::LiesOn(array, device)) continue;
    NDArray& target = staged[stage][external];
    if (target.empty())
      target = NDArray(runtime, array.shape(), array.dtype(), device, Layout(), "input");
    target.CopyFrom(array);
    array = target;
  }
}

// Pushes, before a run, a small function that points the views at this run's inputs. The arena
// orders it between the previous run and this one.
void Executor::Impl::Prepare(Recycler<Run>::Lease run, bool is_forward) {
  if (is_forward) stage = 1 - stage;
  Stage(&run->inputs);
  // A backward pass uses the inputs of its forward pass besides its head gradients.
  executor::MakeDistinct(externals, is_forward ? std::span<const NDArray>() : kept_inputs,
                         &run->inputs);
  if (is_forward) kept_inputs.clear();
  for (const auto& [external, array] : run->inputs) {
    externals.SetPort(externals[external].port, array.var());
    kept_inputs.push_back(array);
  }
  if (is_forward) {
    random.Next(request.is_train);
    monitored = monitor && monitor_runs++ % static_cast<uint64_t>(monitor_every) == 0;
  }
  for (const executor::ArenaPlan& planned : plan.arenas)
    run->arenas.push_back(arena->On(planned.ctx));
  run->random = random.last();
  run->precomputation =
      is_forward ? sequences->PlanPrecomputed(arrays) : executor::Precomputation();
  if (monitored) run->monitor = monitor;
  arena->forward_of = nullptr;
  const engine::VarHandle writes[] = {arena->bytes.var()};
  engine::PushOptions options;
  options.ctx = request.ctx;
  options.priority = executor::kStepPriority;
  options.name = "bind_inputs";
  if (is_forward) options.renews = writes;
  runtime.engine().PushSync(
      [this, run = std::move(run)](RunContext) {
        executor::KernelSet& kernels = sequences->kernels();
        for (const auto& [external, array] : run->inputs)
          kernels.SetExternal(external, array.data().data);
        for (size_t i = 0; i < run->arenas.size(); ++i) {
          void* const base = run->arenas[i].data().data;
          if (base != resolved_arenas[i]) kernels.SetArena(base, static_cast<int>(i));
          resolved_arenas[i] = base;
        }
        state.random = run->random;
        state.precomputation = run->precomputation;
        state.monitor = run->monitor;
      },
      {}, writes, options);
}

Executor::Executor() = default;

// Every operation writes the arena, so behind it all users of kernels and state are done.
Executor::~Executor() {
  if (!impl_) return;
  const void* own = impl_.get();
  impl_->arena->forward_of.compare_exchange_strong(own, nullptr);
  Runtime& runtime = impl_->runtime;
  const NDArray runs = impl_->arena->Runs();
  runtime.DestroyAfter(runs.var(), std::move(impl_));
}

std::unique_ptr<Executor> Executor::Impl::Make(Runtime& runtime, const Symbol& symbol,
                                               BindRequest request, executor::BoundArrays given,
                                               Executor* shared) {
  for (const Context device : request.devices()) CheckDevice(runtime.backend(device), device);
  AdoptSpecs(given.args, &request);
  AdoptSpecs(given.auxs, &request);
  std::unique_ptr<Executor> result(new Executor);
  result->impl_ = std::make_unique<Impl>(runtime, symbol, std::move(request), std::move(given),
                                         shared ? shared->impl_->arena : std::make_shared<Arena>(),
                                         shared ? &shared->impl_->state.namesakes : nullptr);
  return result;
}

std::unique_ptr<Executor> Executor::Bind(Runtime& runtime, const Symbol& symbol,
                                         BindRequest request, const ArrayMap& args,
                                         const ArrayMap& grads, const ArrayMap& aux,
                                         Executor* shared) {
  for (const std::string& name : symbol.ListArguments()) {
    if (request.inputs.contains(name)) continue;
    CheckGiven(args, name, "argument");
    const auto asked = request.grad_req.find(name);
    if (asked != request.grad_req.end() && asked->second != GradReq::kNull)
      CheckGiven(grads, name, "gradient array of argument");
  }
  for (const std::string& name : symbol.ListAuxiliaryStates())
    CheckGiven(aux, name, "auxiliary state");
  return Impl::Make(runtime, symbol, std::move(request), {args, grads, aux, {}, {}}, shared);
}

std::unique_ptr<Executor> Executor::SimpleBind(Runtime& runtime, const Symbol& symbol,
                                               BindRequest request, Executor* shared) {
  executor::BoundArrays given;
  if (shared) {
    for (const std::string& name : symbol.ListArguments()) {
      const auto found = shared->args().find(name);
      if (found != shared->args().end() && !request.inputs.contains(name))
        given.args[name] = found->second;
    }
    for (const std::string& name : symbol.ListAuxiliaryStates()) {
      const auto found = shared->auxs().find(name);
      if (found != shared->auxs().end()) given.auxs[name] = found->second;
    }
  }
  return Impl::Make(runtime, symbol, std::move(request), std::move(given), shared);
}

std::unique_ptr<Executor> Executor::Reshape(const std::map<std::string, TShape>& input_shapes) {
  BindRequest request = impl_->request;
  for (const auto& [name, shape] : input_shapes) {
    if (!request.inputs.contains(name)) {
      Throw(ErrorKind::kConfig, "the net has no input '{}'{}", name,
            DidYouMean(name, impl_->input_names));
    }
    request.shapes[name] = shape;
  }
  const executor::BoundArrays& bound = impl_->arrays;
  return Impl::Make(impl_->runtime, impl_->symbol, std::move(request),
                    {bound.args, bound.grads, bound.auxs, {}, bound.loss_scale}, this);
}

void Executor::Forward(std::span<const NDArray> inputs) {
  Impl& impl = *impl_;
  Recycler<Run>::Lease run = impl.runs.Take();
  executor::CheckInputs(impl.externals, impl.input_names, inputs, &run->inputs);
  impl.Prepare(std::move(run), true);
  impl.sequences->PushPrecomputed(impl.arena->bytes.var());
  impl.Push(StepSequences::kForward);
  if (impl.sequences->has_backward()) {
    impl.arena->forward_of = &impl;
  } else {
    impl.kept_inputs.clear();
  }
}

void Executor::Backward(std::span<const NDArray> head_grads) {
  Impl& impl = *impl_;
  if (!impl.sequences->has_backward()) {
    Throw(ErrorKind::kUsage,
          "this executor was bound without gradients; give grad_req to run backward");
  }
  if (impl.arena->forward_of != &impl) {
    Throw(ErrorKind::kUsage,
          "Backward without a Forward: run Forward first, then Backward once, with no other run on "
          "the same arena in between");
  }
  Recycler<Run>::Lease run = impl.runs.Take();
  executor::CheckHeadGrads(impl.externals, impl.graph, impl.symbol, head_grads, &run->inputs);
  impl.Prepare(std::move(run), false);
  impl.Push(StepSequences::kBackward);
  impl.kept_inputs.clear();
}

void Executor::Step(std::span<const NDArray> inputs) {
  BeginStep(inputs);
  for (size_t i = 0; i < step_sums().size(); ++i) ContinueStep();
}

void Executor::BeginStep(std::span<const NDArray> inputs) {
  Impl& impl = *impl_;
  if (!impl.sequences->has_backward()) {
    Throw(ErrorKind::kUsage,
          "this executor was bound without gradients; give grad_req to train with it");
  }
  if (!impl.externals.head_grads().empty()) {
    const int i = impl.externals[impl.externals.head_grads()[0]].head_grad;
    Throw(ErrorKind::kConfig,
          "output {} of the net ({}) is not a loss and cannot be trained; end the net in a loss "
          "operator",
          i, impl.symbol.ListOutputs()[i]);
  }
  Recycler<Run>::Lease run = impl.runs.Take();
  executor::CheckInputs(impl.externals, impl.input_names, inputs, &run->inputs);
  impl.Prepare(std::move(run), true);
  impl.continued = 0;
  ContinueStep();
}

void Executor::ContinueStep() {
  Impl& impl = *impl_;
  const size_t sums = step_sums().size();
  MXTRAIN_ASSERT(impl.continued <= sums);
  impl.sequences->PushPiece(StepSequences::kStep, impl.continued, impl.arena->bytes.var());
  if (impl.continued++ == sums) impl.kept_inputs.clear();
}

const std::vector<NDArray>& Executor::step_sums() const {
  return impl_->sequences->sums(StepSequences::kStep);
}

const std::vector<std::string>& Executor::input_names() const {
  return impl_->input_names;
}
const std::vector<NDArray>& Executor::outputs() const {
  return impl_->arrays.outputs;
}
const NDArray& Executor::arg(std::string_view name) const {
  return Lookup(impl_->arrays.args, name, "parameter");
}
const NDArray& Executor::grad(std::string_view name) const {
  return Lookup(impl_->arrays.grads, name, "gradient of");
}
const NDArray& Executor::aux(std::string_view name) const {
  return Lookup(impl_->arrays.auxs, name, "auxiliary state");
}
const std::map<std::string, NDArray>& Executor::args() const {
  return impl_->arrays.args;
}
const std::map<std::string, NDArray>& Executor::grads() const {
  return impl_->arrays.grads;
}
const std::map<std::string, NDArray>& Executor::auxs() const {
  return impl_->arrays.auxs;
}
const NDArray& Executor::loss_scale() const {
  return impl_->arrays.loss_scale;
}
uint64_t Executor::random_step() const {
  return impl_->random.step();
}
void Executor::set_random_step(uint64_t step) {
  impl_->random.set_step(step);
}
void Executor::SetMonitor(Monitor callback, int every) {
  if (every < 1) Throw(ErrorKind::kUsage, "a monitor needs every >= 1, not {}", every);
  impl_->monitor = std::move(callback);
  impl_->monitor_every = every;
  impl_->monitor_runs = 0;
  impl_->monitored = false;
}
const executor::ExecGraph& Executor::graph() const {
  return impl_->graph;
}
const executor::MemoryPlan& Executor::memory_plan() const {
  return impl_->plan;
}
int64_t Executor::arena_bytes() const {
  return impl_->plan.arena_bytes;
}

}  // namespace mxtrain
