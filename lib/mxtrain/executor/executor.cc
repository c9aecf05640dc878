#include "mxtrain/executor/executor.h"

#include <algorithm>
#include <atomic>
#include <iterator>
#include <set>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/executor/kernels.h"

namespace mxtrain {
namespace {

using executor::ExecGraph;
using executor::GradReq;
using executor::MemoryPlan;

// Between two operations of a step everything else that is ready goes first: updates and copies then overlap with the rest of the step.
constexpr int kStepPriority = -1'000'000;

using ArrayMap = std::map<std::string, NDArray>;

const NDArray& Lookup(const ArrayMap& arrays, std::string_view name, const char* what) {
  const auto found = arrays.find(std::string(name));
  if (found != arrays.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [key, array] : arrays) known.push_back(key);
  Throw(ErrorKind::kConfig, "the net has no {} '{}'{}", what, name, DidYouMean(name, known));
}

// Shared by executors that never run at once; grows when one of them needs more.
struct Arena {
  NDArray bytes;
  const void* forward_of = nullptr;  // the executor for whose Backward it holds what a Forward left; null: none
};

void GrowArena(Runtime& runtime, Context ctx, int64_t bytes, Arena* arena) {
  if (!arena->bytes.empty() && arena->bytes.shape().Size() >= bytes) return;
  // Steps under way are ordered by the old array alone.
  if (!arena->bytes.empty()) arena->bytes.WaitToWrite();
  arena->bytes = NDArray(runtime, TShape{bytes}, DType::kUint8, ctx, Layout(), "arena");
  arena->forward_of = nullptr;
}

void CheckGiven(const ArrayMap& arrays, const std::string& name, const char* what) {
  if (arrays.contains(name)) return;
  std::vector<std::string> given;
  for (const auto& [key, array] : arrays) given.push_back(key);
  Throw(ErrorKind::kConfig, "no {} '{}' was given to Bind{}", what, name, DidYouMean(name, given));
}

}  // namespace

struct Executor::Impl {
  Impl(Runtime& r, const Symbol& s, BindRequest q) : runtime(r), symbol(s), request(std::move(q)) {}
  ~Impl();

  // Outer arrays: what buffers outside the arena are. An input has no array of its own; `port` numbers its place in a push.
  struct Outer {
    NDArray array;
    int port = -1;
    int input = -1;      // index into input_names, or -1
    int head_grad = -1;  // index into outputs, or -1
    bool derived = false;
    TensorSpec spec;     // of inputs and head gradients
  };

  // Binds to the given arrays and makes those that are missing.
  static std::unique_ptr<Executor> Make(Runtime& runtime, const Symbol& symbol, BindRequest request, const ArrayMap& args,
                                        const ArrayMap& grads, const ArrayMap& aux, Executor* shared);

  void Plan();
  void CollectOuter();
  void MakeSequences();
  // A part of the step, and which of the executor's ports it uses: its own port i is ports[i].
  struct Frozen {
    engine::SequenceHandle handle = nullptr;
    std::vector<int> ports;
    explicit operator bool() const { return handle != nullptr; }
  };
  Frozen MakeSequence(const std::vector<int>& kernel_ids);
  // The arrays of a run, by outer, fit to be bound: checked, plain, each variable once.
  using Bound = std::vector<std::pair<int, NDArray>>;
  Bound CheckInputs(std::span<const NDArray> inputs) const;
  Bound CheckHeadGrads(std::span<const NDArray> head_grads) const;
  NDArray CheckArray(const Outer& outer, const std::string& name, const NDArray& array) const;
  void MakeDistinct(std::span<const NDArray> others, Bound* bound) const;
  void Prepare(Bound bound, bool forward);
  void RunDerived();
  void RunDerivedKernel(int k, RunContext ctx);
  void Push(const Frozen& sequence);
  int PortOf(engine::VarHandle var);
  const NDArray& GivenOrNew(ArrayMap* arrays, const std::string& name, const TensorSpec& spec, bool zero);

  Runtime& runtime;
  const Symbol symbol;
  BindRequest request;
  ExecGraph graph;
  MemoryPlan plan;
  ArrayMap args, grads, auxs;
  std::vector<std::string> input_names;
  std::vector<NDArray> outputs, head_grads;
  std::shared_ptr<Arena> arena;
  void* resolved_arena = nullptr;  // touched by the compute lane only

  std::vector<Outer> outers;
  std::vector<int> outer_of;                 // [buffer]
  std::vector<engine::VarHandle> port_vars;  // fixed ones are filled; those of inputs change by push
  int arena_port = -1;
  std::vector<int> input_outers, head_grad_outers;  // in order of inputs and of outputs
  std::set<engine::VarHandle> own_vars;             // of every outer array that is always the same

  executor::StepState state;
  uint64_t random_step = 0;
  Monitor monitor;
  int monitor_every = 1;
  uint64_t monitor_runs = 0;
  bool monitored = false;  // the last forward pass; its Backward is too

  std::unique_ptr<executor::KernelSet> kernels;
  Frozen forward, backward, step, derived;
  std::vector<NDArray> kept_inputs;  // until the run is pushed; those of a Forward until its Backward
  uint64_t derived_version = 0;  // sum of versions of the parameters when derived arrays were last made
  bool derived_made = false;
  std::atomic<bool> derived_failed{false};
};

Executor::Impl::~Impl() {
  engine::Engine& engine = runtime.engine();
  for (const Frozen& s : {forward, backward, step, derived}) {
    if (s) engine.DeleteSequence(s.handle);
  }
  if (arena && arena->forward_of == this) arena->forward_of = nullptr;
  // Kernels and state are used by what was pushed: wait for it through the arena, which every operation writes.
  if (arena && !arena->bytes.empty()) {
    try {
      engine.WaitForVar(arena->bytes.var());
    } catch (const std::exception& e) {
      runtime.log().Warning("an error of a step that nobody waited for: {}", e.what());
    }
  }
}

void Executor::Impl::Plan() {
  graph = executor::RunPasses(symbol.graph(), request, runtime);
  plan = executor::PlanMemory(graph, request, executor::Strategy::kFull);
  for (int id : graph.arguments) {
    if (request.inputs.contains(graph.nodes[id].name)) input_names.push_back(graph.nodes[id].name);
  }
}

const NDArray& Executor::Impl::GivenOrNew(ArrayMap* arrays, const std::string& name, const TensorSpec& spec, bool zero) {
  auto [found, fresh] = arrays->try_emplace(name);
  if (fresh) {
    found->second = NDArray(runtime, spec.shape, spec.type, request.ctx, spec.layout, name);
    if (zero) found->second.Fill(0);
  }
  if (!(found->second.spec() == spec)) {
    Throw(ErrorKind::kConfig, "array '{}' is {} {} in layout {}; the net needs {} {} in layout {}", name, NameOf(found->second.dtype()),
          found->second.shape().ToString(), found->second.layout().Name(), NameOf(spec.type), spec.shape.ToString(), spec.layout.Name());
  }
  return found->second;
}

int Executor::Impl::PortOf(engine::VarHandle var) {
  for (size_t p = 0; p < port_vars.size(); ++p) {
    if (port_vars[p] == var) return static_cast<int>(p);
  }
  port_vars.push_back(var);
  return static_cast<int>(port_vars.size()) - 1;
}

void Executor::Impl::CollectOuter() {
  outer_of.assign(plan.buffers.size(), -1);
  auto add = [&](NodeEntry entry, Outer outer) {
    const int buffer = plan.buffer_of[entry.node][entry.index];
    if (outer_of[buffer] >= 0) return outer_of[buffer];
    if (!outer.array.empty()) {
      outer.port = PortOf(outer.array.var());
    } else {
      outer.port = static_cast<int>(port_vars.size());
      port_vars.push_back(nullptr);
    }
    if (!outer.array.empty()) own_vars.insert(outer.array.var());
    if (outer.input >= 0) input_outers.push_back(static_cast<int>(outers.size()));
    if (outer.head_grad >= 0) head_grad_outers.push_back(static_cast<int>(outers.size()));
    outers.push_back(std::move(outer));
    return outer_of[buffer] = static_cast<int>(outers.size()) - 1;
  };

  int inputs = 0;
  for (size_t k = 0; k < graph.arguments.size(); ++k) {
    const int id = graph.arguments[k];
    const executor::ExecNode& node = graph.nodes[id];
    Outer outer;
    if (request.inputs.contains(node.name)) {
      outer.input = inputs++;
      outer.spec = node.specs[0];
    } else {
      outer.array = GivenOrNew(&args, node.name, node.specs[0], false);
    }
    add({id, 0}, std::move(outer));
    if (const NodeEntry gradient = graph.gradients[k]) {
      Outer target;
      target.array = GivenOrNew(&grads, node.name, graph.spec(gradient), true);
      add(gradient, std::move(target));
    }
  }
  for (int id : graph.auxiliaries) {
    Outer outer;
    outer.array = GivenOrNew(&auxs, graph.nodes[id].name, graph.nodes[id].specs[0], false);
    add({id, 0}, std::move(outer));
  }
  for (size_t i = 0; i < graph.heads.size(); ++i) {
    const NodeEntry head = graph.heads[i];
    if (graph.nodes[head.node].is_variable()) {
      Throw(ErrorKind::kConfig, "output '{}' of the net is a variable; apply an operator to it (_copy)", graph.nodes[head.node].name);
    }
    Outer outer;
    const TensorSpec& spec = graph.spec(head);
    const int known = outer_of[plan.buffer_of[head.node][head.index]];
    outer.array = known >= 0 ? outers[known].array : NDArray(runtime, spec.shape, spec.type, request.ctx, spec.layout, graph.nodes[head.node].name);
    outputs.push_back(outer.array);
    add(head, std::move(outer));
  }
  for (size_t i = 0; i < graph.head_grads.size(); ++i) {
    if (!graph.head_grads[i]) continue;
    Outer outer;
    outer.head_grad = static_cast<int>(i);
    outer.spec = graph.spec(graph.head_grads[i]);
    add(graph.head_grads[i], std::move(outer));
  }
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    if (!graph.nodes[id].derived) continue;
    for (int i = 0; i < static_cast<int>(graph.nodes[id].specs.size()); ++i) {
      const TensorSpec& spec = graph.nodes[id].specs[i];
      Outer outer;
      outer.array = NDArray(runtime, spec.shape, spec.type, request.ctx, spec.layout, graph.nodes[id].name);
      outer.derived = true;
      add({id, i}, std::move(outer));
    }
  }
  GrowArena(runtime, request.ctx, plan.arena_bytes, arena.get());
  arena_port = static_cast<int>(port_vars.size());
  port_vars.push_back(nullptr);  // the arena may be another array after it has grown
}

Executor::Impl::Frozen Executor::Impl::MakeSequence(const std::vector<int>& kernel_ids) {
  std::vector<executor::Access> accesses;
  for (int k : kernel_ids) accesses.push_back(kernels->access(k));
  const auto edges = executor::FindEdges(accesses);
  std::vector<engine::SequenceOp> ops;
  Frozen frozen;
  std::vector<int> local(port_vars.size(), -1);
  auto localize = [&](const std::set<int>& ports, std::vector<int>* out) {
    for (int port : ports) {
      if (local[port] < 0) {
        local[port] = static_cast<int>(frozen.ports.size());
        frozen.ports.push_back(port);
      }
      out->push_back(local[port]);
    }
  };
  for (size_t i = 0; i < kernel_ids.size(); ++i) {
    const int k = kernel_ids[i];
    engine::SequenceOp op;
    op.name = (*kernels)[k].name;
    op.ctx = graph.nodes[(*kernels)[k].node].ctx;
    op.priority = kStepPriority;
    op.fn = [this, k](RunContext ctx) { kernels->Run(k, ctx); };
    if (graph.nodes[(*kernels)[k].node].derived) op.fn = [this, k](RunContext ctx) { RunDerivedKernel(k, ctx); };
    op.after = edges[i];
    std::set<int> reads, writes{arena_port};
    for (const executor::ByteRange& r : accesses[i].reads) {
      if (r.space > 0) reads.insert(outers[r.space - 1].port);
    }
    for (const executor::ByteRange& w : accesses[i].writes) {
      if (w.space > 0) writes.insert(outers[w.space - 1].port);
    }
    for (int port : writes) reads.erase(port);
    localize(reads, &op.reads);
    localize(writes, &op.writes);
    // A run writes its arrays anew; what the arena holds may be of a Forward that failed.
    std::copy_if(op.writes.begin(), op.writes.end(), std::back_inserter(op.renews), [&](int port) { return port != local[arena_port]; });
    ops.push_back(std::move(op));
  }
  frozen.handle = runtime.engine().NewSequence(std::move(ops), static_cast<int>(frozen.ports.size()));
  return frozen;
}

void Executor::Impl::MakeSequences() {
  kernels = std::make_unique<executor::KernelSet>(graph, plan, outer_of, runtime, request.is_train, state);
  for (size_t i = 0; i < outers.size(); ++i) {
    if (!outers[i].array.empty()) kernels->SetOuter(static_cast<int>(i), outers[i].array.data().data);
  }
  std::vector<int> in_forward, in_backward, in_step, in_derived;
  for (int k = 0; k < kernels->size(); ++k) {
    const executor::ExecNode& node = graph.nodes[(*kernels)[k].node];
    if (node.derived) {
      in_derived.push_back(k);
      continue;
    }
    (node.backward_pass ? in_backward : in_forward).push_back(k);
    in_step.push_back(k);
  }
  forward = MakeSequence(in_forward);
  if (!in_derived.empty()) derived = MakeSequence(in_derived);
  if (graph.first_backward >= 0) {
    backward = MakeSequence(in_backward);
    step = MakeSequence(in_step);
  }
}

void Executor::Impl::Push(const Frozen& sequence) {
  port_vars[arena_port] = arena->bytes.var();
  std::vector<engine::VarHandle> ports;
  for (int port : sequence.ports) ports.push_back(port_vars[port]);
  runtime.engine().Push(sequence.handle, ports);
}

// Brings the derived arrays up to date when a parameter was written since they were made.
void Executor::Impl::RunDerived() {
  if (!derived) return;
  uint64_t version = 0;
  for (const ArrayMap* arrays : {&args, &auxs}) {
    for (const auto& [name, array] : *arrays) version += runtime.engine().Version(array.var());
  }
  if (!derived_failed.exchange(false) && derived_made && version == derived_version) return;
  derived_made = true;
  derived_version = version;
  Push(derived);
}

void Executor::Impl::RunDerivedKernel(int k, RunContext ctx) {
  try {
    kernels->Run(k, ctx);
  } catch (...) {
    derived_failed = true;
    throw;
  }
}

NDArray Executor::Impl::CheckArray(const Outer& outer, const std::string& name, const NDArray& array) const {
  const TensorSpec& spec = outer.spec;
  if (array.empty() || !(array.shape() == spec.shape) || array.dtype() != spec.type) {
    Throw(ErrorKind::kConfig, "input '{}' must be {} {}, not {} {}", name, NameOf(spec.type), spec.shape.ToString(),
          array.empty() ? "" : NameOf(array.dtype()), array.empty() ? "an empty array" : array.shape().ToString());
  }
  return array.ToPlain();
}

// The same array twice: the second gets bytes of its own.
void Executor::Impl::MakeDistinct(std::span<const NDArray> others, Bound* bound) const {
  std::vector<engine::VarHandle> seen;
  for (const NDArray& array : others) seen.push_back(array.var());
  for (auto& [outer, array] : *bound) {
    if (own_vars.contains(array.var()) || std::find(seen.begin(), seen.end(), array.var()) != seen.end()) array = array.Copy(request.ctx);
    seen.push_back(array.var());
  }
}

Executor::Impl::Bound Executor::Impl::CheckInputs(std::span<const NDArray> inputs) const {
  if (inputs.size() != input_names.size()) {
    Throw(ErrorKind::kConfig, "the net takes {} inputs ({}), got {} arrays", input_names.size(), join(input_names, ", "), inputs.size());
  }
  Bound bound;
  for (int outer : input_outers) {
    const int i = outers[outer].input;
    bound.emplace_back(outer, CheckArray(outers[outer], input_names[i], inputs[i]));
  }
  return bound;
}

Executor::Impl::Bound Executor::Impl::CheckHeadGrads(std::span<const NDArray> given) const {
  Bound bound;
  for (int outer : head_grad_outers) {
    const int i = outers[outer].head_grad;
    if (bound.size() >= given.size()) {
      Throw(ErrorKind::kConfig, "output {} of the net ({}) needs a head gradient; end the net in a loss, or give one", i,
            symbol.ListOutputs()[i]);
    }
    bound.emplace_back(outer, CheckArray(outers[outer], graph.nodes[graph.head_grads[i].node].name, given[bound.size()]));
  }
  if (bound.size() < given.size()) Throw(ErrorKind::kConfig, "{} head gradients were given, {} are needed", given.size(), bound.size());
  return bound;
}

// Pushes, ahead of a run, the small function that points the views at this run's inputs. It is ordered by the arena: after the run before,
// before this one.
void Executor::Impl::Prepare(Bound bound, bool is_forward) {
  MakeDistinct(is_forward ? std::span<const NDArray>() : kept_inputs, &bound);  // a backward pass has the inputs beside its head gradients
  if (is_forward) kept_inputs.clear();
  for (const auto& [outer, array] : bound) {
    port_vars[outers[outer].port] = array.var();
    kept_inputs.push_back(array);
  }
  if (is_forward) {
    random_step += request.is_train;
    monitored = monitor && monitor_runs++ % static_cast<uint64_t>(monitor_every) == 0;
  }
  arena->forward_of = nullptr;
  const engine::VarHandle writes[] = {arena->bytes.var()};
  engine::PushOptions options;
  options.ctx = request.ctx;
  options.priority = kStepPriority;
  options.name = "bind_inputs";
  options.renews = is_forward;
  runtime.engine().PushSync(
      [this, bound = std::move(bound), bytes = arena->bytes, random = random_step, watch = monitored ? monitor : Monitor()](RunContext) {
        for (const auto& [outer, array] : bound) kernels->SetOuter(outer, array.data().data);
        if (void* base = bytes.data().data; base != resolved_arena) {
          kernels->SetArena(base);
          resolved_arena = base;
        }
        state.random = {runtime.options().seed, random};
        state.monitor = watch;
      },
      {}, writes, options);
}

Executor::Executor() = default;
Executor::~Executor() = default;

namespace {
// Shapes, types and layouts of arrays that exist already.
void AdoptSpecs(const ArrayMap& arrays, Executor::BindRequest* request) {
  for (const auto& [name, array] : arrays) {
    TShape asked = request->shapes[name];
    const auto type = request->types.find(name);
    if (!MergeShape(array.shape(), &asked) || (type != request->types.end() && type->second != array.dtype())) {
      Throw(ErrorKind::kConfig, "array '{}' is {} {}; {} {} was asked for", name, NameOf(array.dtype()), array.shape().ToString(),
            type != request->types.end() ? NameOf(type->second) : "shape", request->shapes[name].ToString());
    }
    request->shapes[name] = array.shape();
    request->types[name] = array.dtype();
    request->layouts[name] = array.layout();
  }
}
}  // namespace

std::unique_ptr<Executor> Executor::Impl::Make(Runtime& runtime, const Symbol& symbol, BindRequest request, const ArrayMap& args,
                                               const ArrayMap& grads, const ArrayMap& aux, Executor* shared) {
  CheckDevice(runtime.backend(request.ctx), request.ctx);
  AdoptSpecs(args, &request);
  AdoptSpecs(aux, &request);
  std::unique_ptr<Executor> result(new Executor);
  result->impl_ = std::make_unique<Impl>(runtime, symbol, std::move(request));
  Impl& impl = *result->impl_;
  impl.arena = shared ? shared->impl_->arena : std::make_shared<Arena>();
  impl.Plan();
  impl.args = args;
  impl.grads = grads;
  impl.auxs = aux;
  impl.CollectOuter();
  impl.MakeSequences();
  return result;
}

std::unique_ptr<Executor> Executor::Bind(Runtime& runtime, const Symbol& symbol, BindRequest request, const ArrayMap& args, const ArrayMap& grads,
                                         const ArrayMap& aux, Executor* shared) {
  for (const std::string& name : symbol.ListArguments()) {
    if (request.inputs.contains(name)) continue;
    CheckGiven(args, name, "argument");
    const auto asked = request.grad_req.find(name);
    if (asked != request.grad_req.end() && asked->second != GradReq::kNull) CheckGiven(grads, name, "gradient array of argument");
  }
  for (const std::string& name : symbol.ListAuxiliaryStates()) CheckGiven(aux, name, "auxiliary state");
  return Impl::Make(runtime, symbol, std::move(request), args, grads, aux, shared);
}

std::unique_ptr<Executor> Executor::SimpleBind(Runtime& runtime, const Symbol& symbol, BindRequest request, Executor* shared) {
  ArrayMap args, aux;
  if (shared) {
    for (const std::string& name : symbol.ListArguments()) {
      const auto found = shared->args().find(name);
      if (found != shared->args().end() && !request.inputs.contains(name)) args[name] = found->second;
    }
    for (const std::string& name : symbol.ListAuxiliaryStates()) {
      const auto found = shared->auxs().find(name);
      if (found != shared->auxs().end()) aux[name] = found->second;
    }
  }
  return Impl::Make(runtime, symbol, std::move(request), args, {}, aux, shared);
}

std::unique_ptr<Executor> Executor::Reshape(const std::map<std::string, TShape>& input_shapes) {
  BindRequest request = impl_->request;
  for (const auto& [name, shape] : input_shapes) {
    if (!request.inputs.contains(name)) {
      Throw(ErrorKind::kConfig, "the net has no input '{}'{}", name, DidYouMean(name, impl_->input_names));
    }
    request.shapes[name] = shape;
  }
  return Impl::Make(impl_->runtime, impl_->symbol, std::move(request), impl_->args, impl_->grads, impl_->auxs, this);
}

void Executor::Forward(std::span<const NDArray> inputs) {
  Impl& impl = *impl_;
  impl.Prepare(impl.CheckInputs(inputs), true);
  impl.RunDerived();
  impl.Push(impl.forward);
  if (impl.backward) {
    impl.arena->forward_of = &impl;
  } else {
    impl.kept_inputs.clear();
  }
}

void Executor::Backward(std::span<const NDArray> head_grads) {
  Impl& impl = *impl_;
  if (!impl.backward) Throw(ErrorKind::kUsage, "this executor was bound without gradients; give grad_req to run backward");
  if (impl.arena->forward_of != &impl) {
    Throw(ErrorKind::kUsage, "Backward has no Forward to follow: run Forward first, then Backward once, and nothing on the same arena between");
  }
  impl.Prepare(impl.CheckHeadGrads(head_grads), false);
  impl.Push(impl.backward);
  impl.kept_inputs.clear();
}

void Executor::Step(std::span<const NDArray> inputs) {
  Impl& impl = *impl_;
  if (!impl.step) Throw(ErrorKind::kUsage, "this executor was bound without gradients; give grad_req to train with it");
  if (!impl.head_grad_outers.empty()) {
    const int i = impl.outers[impl.head_grad_outers[0]].head_grad;
    Throw(ErrorKind::kConfig, "output {} of the net ({}) is no loss, so it cannot be trained; end the net in a loss operator", i,
          impl.symbol.ListOutputs()[i]);
  }
  impl.Prepare(impl.CheckInputs(inputs), true);
  impl.Push(impl.step);
  impl.kept_inputs.clear();
}

const std::vector<std::string>& Executor::input_names() const { return impl_->input_names; }
const std::vector<NDArray>& Executor::outputs() const { return impl_->outputs; }
const NDArray& Executor::arg(std::string_view name) const { return Lookup(impl_->args, name, "parameter"); }
const NDArray& Executor::grad(std::string_view name) const { return Lookup(impl_->grads, name, "gradient of"); }
const NDArray& Executor::aux(std::string_view name) const { return Lookup(impl_->auxs, name, "auxiliary state"); }
const std::map<std::string, NDArray>& Executor::args() const { return impl_->args; }
const std::map<std::string, NDArray>& Executor::grads() const { return impl_->grads; }
const std::map<std::string, NDArray>& Executor::auxs() const { return impl_->auxs; }
uint64_t Executor::random_step() const { return impl_->random_step; }
void Executor::set_random_step(uint64_t step) { impl_->random_step = step; }
void Executor::SetMonitor(Monitor callback, int every) {
  if (every < 1) Throw(ErrorKind::kUsage, "a monitor looks at every n-th run, n >= 1, not {}", every);
  impl_->monitor = std::move(callback);
  impl_->monitor_every = every;
  impl_->monitor_runs = 0;
  impl_->monitored = false;
}
const executor::ExecGraph& Executor::graph() const { return impl_->graph; }
const executor::MemoryPlan& Executor::memory_plan() const { return impl_->plan; }
int64_t Executor::arena_bytes() const { return impl_->plan.arena_bytes; }

}  // namespace mxtrain
