#include "mxtrain/executor/executor.h"

#include <algorithm>
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
};

void GrowArena(Runtime& runtime, Context ctx, int64_t bytes, Arena* arena) {
  if (!arena->bytes.empty() && arena->bytes.shape().Size() >= bytes) return;
  // Steps under way are ordered by the old array alone.
  if (!arena->bytes.empty()) arena->bytes.WaitToWrite();
  arena->bytes = NDArray(runtime, TShape{bytes}, DType::kUint8, ctx, Layout(), "arena");
}

}  // namespace

struct Executor::Impl {
  Impl(Runtime& r, const Symbol& s, BindRequest q) : runtime(r), symbol(s), request(std::move(q)) {}
  ~Impl();

  void Plan();
  void CheckArrays() const;
  void CollectOuter();
  void MakeSequences();
  // A part of the step, and which of the executor's ports it uses: its own port i is ports[i].
  struct Frozen {
    engine::SequenceHandle handle = nullptr;
    std::vector<int> ports;
    explicit operator bool() const { return handle != nullptr; }
  };
  Frozen MakeSequence(const std::vector<int>& kernel_ids);
  void Prepare(std::span<const NDArray> inputs, bool forward);
  void RunDerived();
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

  // Outer arrays: what buffers outside the arena are. An input has no array of its own; `port` numbers its place in a push.
  struct Outer {
    NDArray array;
    int port = -1;
    int input = -1;      // index into input_names, or -1
    int head_grad = -1;  // index into outputs, or -1
    bool derived = false;
    TensorSpec spec;     // of inputs and head gradients
  };
  std::vector<Outer> outers;
  std::vector<int> outer_of;                 // [buffer]
  std::vector<engine::VarHandle> port_vars;  // fixed ones are filled; those of inputs change by push
  int arena_port = -1;

  executor::StepState state;
  uint64_t random_step = 0;
  Monitor monitor;
  int monitor_every = 1;
  uint64_t monitor_runs = 0;

  std::unique_ptr<executor::KernelSet> kernels;
  Frozen forward, backward, step, derived;
  std::vector<NDArray> kept_inputs;  // until the run is pushed; those of a Forward until its Backward
  uint64_t derived_version = 0;  // sum of versions of the parameters when derived arrays were last made
  bool derived_made = false;
};

Executor::Impl::~Impl() {
  engine::Engine& engine = runtime.engine();
  for (const Frozen& s : {forward, backward, step, derived}) {
    if (s) engine.DeleteSequence(s.handle);
  }
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
  if (derived_made && version == derived_version) return;
  derived_made = true;
  derived_version = version;
  Push(derived);
}

// Pushes, ahead of a run, the small function that points the views at this run's inputs. It is ordered by the arena: after the run before,
// before this one.
void Executor::Impl::Prepare(std::span<const NDArray> inputs, bool is_forward) {
  const size_t wanted = is_forward ? input_names.size() : 0;
  if (inputs.size() != wanted && is_forward) {
    Throw(ErrorKind::kConfig, "the net takes {} inputs ({}), got {} arrays", wanted, join(input_names, ", "), inputs.size());
  }
  std::vector<std::pair<int, NDArray>> bound;
  if (is_forward) kept_inputs.clear();
  std::set<engine::VarHandle> seen(port_vars.begin(), port_vars.end());
  for (const Outer& outer : outers) {
    if ((is_forward ? outer.input : outer.head_grad) >= 0) seen.erase(port_vars[outer.port]);
  }
  for (size_t i = 0; i < outers.size(); ++i) {
    const int index = is_forward ? outers[i].input : outers[i].head_grad;
    if (index < 0) continue;
    const std::string& name = is_forward ? input_names[index] : graph.nodes[graph.head_grads[index].node].name;
    NDArray array = inputs[index];
    const TensorSpec& spec = outers[i].spec;
    if (array.empty() || !(array.shape() == spec.shape) || array.dtype() != spec.type) {
      Throw(ErrorKind::kConfig, "input '{}' must be {} {}, not {} {}", name, NameOf(spec.type), spec.shape.ToString(),
            array.empty() ? "" : NameOf(array.dtype()), array.empty() ? "an empty array" : array.shape().ToString());
    }
    array = array.ToPlain();
    if (!seen.insert(array.var()).second) {  // the same array twice: the second gets bytes of its own
      array = array.Copy(request.ctx);
      seen.insert(array.var());
    }
    port_vars[outers[i].port] = array.var();
    kept_inputs.push_back(array);
    bound.emplace_back(static_cast<int>(i), std::move(array));
  }
  if (is_forward && request.is_train) ++random_step;
  const bool monitored = monitor && monitor_runs++ % static_cast<uint64_t>(monitor_every) == 0;
  const engine::VarHandle writes[] = {arena->bytes.var()};
  engine::PushOptions options;
  options.ctx = request.ctx;
  options.priority = kStepPriority;
  options.name = "bind_inputs";
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
    request->shapes[name] = array.shape();
    request->types[name] = array.dtype();
    request->layouts[name] = array.layout();
  }
}
}  // namespace

std::unique_ptr<Executor> Executor::Bind(Runtime& runtime, const Symbol& symbol, BindRequest request, const ArrayMap& args, const ArrayMap& grads,
                                         const ArrayMap& aux, Executor* shared) {
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
  return Bind(runtime, symbol, std::move(request), args, {}, aux, shared);
}

std::unique_ptr<Executor> Executor::Reshape(const std::map<std::string, TShape>& input_shapes) {
  BindRequest request = impl_->request;
  for (const auto& [name, shape] : input_shapes) request.shapes[name] = shape;
  return Bind(impl_->runtime, impl_->symbol, std::move(request), impl_->args, impl_->grads, impl_->auxs, this);
}

void Executor::Forward(std::span<const NDArray> inputs) {
  impl_->Prepare(inputs, true);
  impl_->RunDerived();
  impl_->Push(impl_->forward);
  if (!impl_->backward) impl_->kept_inputs.clear();
}

void Executor::Backward(std::span<const NDArray> head_grads) {
  Impl& impl = *impl_;
  if (!impl.backward) Throw(ErrorKind::kUsage, "this executor was bound without gradients; give grad_req to run backward");
  std::vector<NDArray> by_output(impl.outputs.size());
  size_t next = 0;
  for (size_t i = 0; i < impl.graph.head_grads.size(); ++i) {
    if (!impl.graph.head_grads[i]) continue;
    if (next >= head_grads.size()) {
      Throw(ErrorKind::kConfig, "output {} of the net ({}) needs a head gradient; end the net in a loss, or give one", i,
            impl.symbol.ListOutputs()[i]);
    }
    by_output[i] = head_grads[next++];
  }
  if (next < head_grads.size()) Throw(ErrorKind::kConfig, "{} head gradients were given, {} are needed", head_grads.size(), next);
  impl.Prepare(by_output, false);
  impl.Push(impl.backward);
  impl.kept_inputs.clear();
}

void Executor::Step(std::span<const NDArray> inputs) {
  Impl& impl = *impl_;
  if (!impl.step) Throw(ErrorKind::kUsage, "this executor was bound without gradients; give grad_req to train with it");
  for (size_t i = 0; i < impl.graph.head_grads.size(); ++i) {
    if (impl.graph.head_grads[i]) {
      Throw(ErrorKind::kConfig, "output {} of the net ({}) is no loss, so it cannot be trained; end the net in a loss operator", i,
            impl.symbol.ListOutputs()[i]);
    }
  }
  impl.Prepare(inputs, true);
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
}
const executor::ExecGraph& Executor::graph() const { return impl_->graph; }
const executor::MemoryPlan& Executor::memory_plan() const { return impl_->plan; }
int64_t Executor::arena_bytes() const { return impl_->plan.arena_bytes; }

}  // namespace mxtrain
