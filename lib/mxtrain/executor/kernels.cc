// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/kernels.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/device/derived_layout.h"
#include "mxtrain/executor/internal/namesakes.h"
#include "mxtrain/ndarray/random_stream.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/operator/batch_sums.h"

namespace mxtrain::executor {
namespace {

// Whether the node's results depend on statistics of the batch.
bool NormalizesBatch(const ExecNode& node) {
  if (!node.op || !node.plan) return false;
  const std::string type = node.op->TypeString();
  if (type != "BatchNorm" && type != "_BatchNormActivation") return false;
  for (const auto& [key, value] : node.op->GetParams()) {
    bool global = false;
    if (key != "use_global_stats") continue;
    params::Parse(value, &global);
    return !global;
  }
  return true;
}

// 0 for an operator without sums, and for a second run, which reads those of the first.
int64_t NumSums(const ExecNode& node, const Operator* op) {
  const bool backward = node.kind == Node::Kind::kBackward;
  const auto* sums = dynamic_cast<const BatchSums*>(op);
  if (!sums || (!backward && node.forward >= 0)) return 0;
  return backward ? sums->NumBackwardSums() : sums->NumForwardSums();
}

}  // namespace

ExchangedSums SumsOfStep(const ExecGraph& graph) {
  ExchangedSums all;
  for (const ExecNode& node : graph.nodes) {
    if (!NormalizesBatch(node)) continue;
    const int64_t count = NumSums(node, node.plan->make().get());
    all.arrays += count > 0;
    all.bytes += count * SizeOf(DType::kFloat64);
  }
  return all;
}

KernelSet::KernelSet(const ExecGraph& graph, const MemoryPlan& plan,
                     const std::vector<int>& external_of, Runtime& runtime, bool is_train,
                     const StepState& state, bool divided_batch)
    : graph_(graph),
      plan_(plan),
      external_of_(external_of),
      runtime_(runtime),
      is_train_(is_train),
      divided_batch_(divided_batch && is_train),
      state_(state),
      times_(DeviceTimesOf(runtime)),
      operators_(graph.nodes.size()) {
  int externals = 0;
  for (int external : external_of) externals = std::max(externals, external + 1);
  external_slots_.resize(externals);
  arena_slots_.resize(plan.arenas.size());
  addresses_.resize(arena_slots_.size() + static_cast<size_t>(externals));
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    if (plan.runs[id]) AddNode(id);
  }
}

void KernelSet::PlaceView(TBlob* view, int buffer) {
  if (external_of_[buffer] >= 0) {
    external_slots_[external_of_[buffer]].push_back({view, 0});
  } else {
    const Buffer& b = plan_.buffers[buffer];
    arena_slots_[b.arena].push_back({view, b.offset});
  }
}

void KernelSet::Touch(NodeEntry entry, Use use) {
  const int buffer = plan_.buffer_of[entry.node][entry.index];
  MXTRAIN_ASSERT(buffer >= 0);
  const Buffer& b = plan_.buffers[buffer];
  const ByteRange range =
      external_of_[buffer] >= 0
          ? ByteRange{external_of_[buffer] + 1, 0, std::max<int64_t>(b.bytes, 1)}
          : ByteRange{-b.arena, b.offset, b.offset + b.bytes};
  Access& access = accesses_.back();
  if (use != Use::kWrite) access.reads.push_back(range);
  if (use != Use::kRead) access.writes.push_back(range);
}

// Records that the kernel uses the bytes of a buffer of the arena as it likes; returns their
// offset.
int64_t KernelSet::TouchScratch(int buffer) {
  const Buffer& b = plan_.buffers[buffer];
  accesses_.back().writes.push_back({-b.arena, b.offset, b.offset + b.bytes});
  return b.offset;
}

// The views of one kernel's arrays, in the order in which its Operator expects them.
class KernelSet::Views {
 public:
  // A view of an array that exists. Its address is stable once all views have been added.
  struct Present {
    std::vector<TBlob>* views;
    size_t index;
    NodeEntry entry;
    Use use;
  };

  Views(const ExecGraph& graph, const MemoryPlan& plan, Kernel* kernel)
      : graph_(graph), plan_(plan), node_(graph.nodes[kernel->node]), kernel_(*kernel) {}

  // Of every node but kBackward.
  void AddForward(bool is_train) {
    const int inputs = static_cast<int>(node_.inputs.size()),
              args = node_.kind == Node::Kind::kForward ? node_.num_args : inputs;
    for (int i = 0; i < args; ++i) AddInput(&kernel_.in, i, Use::kRead);
    for (int i = args; i < inputs; ++i)
      AddInput(&kernel_.aux, i, is_train ? Use::kReadWrite : Use::kRead);
    AddOutputs(&kernel_.out, node_.num_outputs());
    for (int i = node_.num_outputs(); i < static_cast<int>(node_.specs.size()); ++i)
      Add(&kernel_.saved, {kernel_.node, i}, node_.specs[i], Use::kWrite);
  }

  // ExecNode tells the positions of the inputs.
  void AddBackward() {
    const ExecNode& forward = graph_.nodes[node_.forward];
    const int outputs = forward.op->NumOutputs();
    int next = 0;
    for (int i = 0; i < outputs; ++i)
      Add(&kernel_.out_grad, node_.inputs[next++], forward.specs[i], Use::kRead);
    for (int i = 0; i < forward.num_args; ++i) {
      const NodeEntry e = node_.inputs[next++];
      Add(&kernel_.in, e, graph_.spec(e ? e : forward.inputs[i]), Use::kRead);
    }
    for (int i = 0; i < outputs; ++i)
      Add(&kernel_.out, node_.inputs[next++], forward.specs[i], Use::kRead);
    for (int i = 0; i < forward.num_aux(); ++i) AddInput(&kernel_.aux, next++, Use::kReadWrite);
    while (next < static_cast<int>(node_.inputs.size()))
      AddInput(&kernel_.saved, next++, Use::kRead);
    AddOutputs(&kernel_.in_grad, forward.num_args);
  }

  const std::vector<Present>& present() const { return present_; }

 private:
  // An empty entry: the view is never followed, but has the array's shape.
  void Add(std::vector<TBlob>* views, NodeEntry entry, const TensorSpec& spec, Use use) {
    views->push_back({nullptr, spec.shape, spec.type, spec.layout, node_.ctx});
    if (entry) present_.push_back({views, views->size() - 1, entry, use});
  }

  void AddInput(std::vector<TBlob>* views, int input, Use use) {
    Add(views, node_.inputs[input], graph_.spec(node_.inputs[input]), use);
  }

  void AddOutputs(std::vector<TBlob>* views, int count) {
    for (int i = 0; i < count; ++i) {
      const OpReqType req = RequestOf(i);
      kernel_.req.push_back(req);
      Add(views, req == OpReqType::kNullOp ? NodeEntry{} : NodeEntry{kernel_.node, i},
          node_.specs[i], req == OpReqType::kAddTo ? Use::kReadWrite : Use::kWrite);
    }
  }

  // As planned: an aliased output is not written.
  OpReqType RequestOf(int output) const {
    if (plan_.aliased[kernel_.node][output]) return OpReqType::kNullOp;
    if (plan_.inplace[kernel_.node][output]) return OpReqType::kWriteInplace;
    return node_.req[output];
  }

  const ExecGraph& graph_;
  const MemoryPlan& plan_;
  const ExecNode& node_;
  Kernel& kernel_;
  std::vector<Present> present_;
};

void KernelSet::AddNode(int id) {
  const ExecNode& node = graph_.nodes[id];
  auto kernel = std::make_unique<Kernel>();
  kernel->node = id;
  kernel->name = node.name;
  if (node.plan) kernel->op = OperatorOf(id);

  Views views(graph_, plan_, kernel.get());
  if (node.kind == Node::Kind::kBackward) {
    views.AddBackward();
  } else {
    views.AddForward(is_train_);
  }
  accesses_.emplace_back();
  for (const Views::Present& view : views.present()) {
    PlaceView(&(*view.views)[view.index], plan_.buffer_of[view.entry.node][view.entry.index]);
    Touch(view.entry, view.use);
  }
  AddWorkspace(kernel.get());
  AddResources(kernel.get());
  if (divided_batch_) AddSums(kernel.get());
  kernels_.push_back(std::move(kernel));
}

// A node shares the operator of the forward node that it belongs to.
std::shared_ptr<Operator> KernelSet::OperatorOf(int id) {
  const ExecNode& node = graph_.nodes[id];
  std::shared_ptr<Operator>& op = operators_[node.forward >= 0 ? node.forward : id];
  if (!op) op = node.plan->make();
  return op;
}

void KernelSet::AddWorkspace(Kernel* kernel) {
  const int buffer = plan_.workspace_of[kernel->node];
  if (buffer < 0) return;
  kernel->workspace = {nullptr, TShape{plan_.buffers[buffer].bytes}, DType::kUint8, Layout(),
                       graph_.nodes[kernel->node].ctx};
  arena_slots_[plan_.buffers[buffer].arena].push_back({&kernel->workspace, TouchScratch(buffer)});
}

void KernelSet::AddResources(Kernel* kernel) {
  const ExecNode& node = graph_.nodes[kernel->node];
  const std::vector<int>& temps = plan_.temp_space_of[kernel->node];
  kernel->requested.resize(temps.size());
  int draws = 0;  // requests of random numbers
  for (size_t i = 0; i < temps.size(); ++i) {
    Resource& r = kernel->requested[i];
    r.who = kernel->name.c_str();
    if (temps[i] == MemoryPlan::kNoTempSpace) {
      r.type = ResourceRequest::kRandom;
      r.random = &state_.random;
      r.random_on_device = RandomOn(node.ctx);
      const uint64_t of_name =
          StreamOf(DrawnAs(graph_, node), static_cast<uint64_t>(state_.replica));
      const auto net = state_.namesakes.find(of_name);
      r.stream = StreamAmong(of_name, net == state_.namesakes.end() ? 0 : net->second, draws++);
    } else if (temps[i] == MemoryPlan::kUnknownSize) {
      r.bytes = ResourceRequest::kUnknownSize;
    } else if (temps[i] >= 0) {
      r.type = ResourceRequest::kTempSpace;
      r.bytes = plan_.buffers[temps[i]].bytes;
      temp_slots_.push_back({&r, TouchScratch(temps[i]), plan_.buffers[temps[i]].arena});
    }
  }
}

void KernelSet::AddSums(Kernel* kernel) {
  const ExecNode& node = graph_.nodes[kernel->node];
  if (NormalizesBatch(node) &&
      (node.ctx.type == DeviceType::kGPU || !dynamic_cast<const BatchSums*>(kernel->op.get()))) {
    Throw(ErrorKind::kConfig,
          "layer '{}'{}: kernel '{}' on {} does not normalize by the statistics of a batch that is "
          "divided among workers; compute on the CPU, or let each worker take its own statistics",
          node.name, node.where.empty() ? "" : format(" ({})", node.where), node.plan->kernel,
          node.ctx.ToString());
  }
  if (const auto first = forward_sums_.find(node.forward);
      first != forward_sums_.end() && node.kind == Node::Kind::kForward) {
    kernel->sums = first->second;
    kernel->sums_given = true;
    return;
  }
  const int64_t count = NumSums(node, kernel->op.get());
  if (count == 0) return;
  const bool backward = node.kind == Node::Kind::kBackward;
  kernel->sums = NDArray(runtime_, TShape{count}, DType::kFloat64, node.ctx, Layout(),
                         format("{} sums of '{}'", backward ? "backward" : "forward", node.name));
  if (!backward) forward_sums_[kernel->node] = kernel->sums;
}

// Null for the CPU.
const RandomState* KernelSet::RandomOn(Context ctx) {
  if (ctx.type != DeviceType::kGPU) return nullptr;
  NDArray& bytes = random_on_[ctx].bytes;
  if (bytes.empty())
    bytes =
        NDArray(runtime_, TShape{kRandomStateBytes}, DType::kUint8, ctx, Layout(), "random state");
  return bytes.data().dptr<RandomState>();
}

void KernelSet::SetArena(void* base, int arena) {
  addresses_[arena] = base;
  char* bytes = static_cast<char*>(base);
  for (const Slot& slot : arena_slots_[arena]) slot.view->data = bytes + slot.offset;
  for (const TempSlot& slot : temp_slots_) {
    if (slot.arena == arena) slot.resource->space = bytes + slot.offset;
  }
}

void KernelSet::SetExternal(int external, void* data) {
  addresses_[arena_slots_.size() + static_cast<size_t>(external)] = data;
  for (const Slot& slot : external_slots_[external])
    slot.view->data = static_cast<char*>(data) + slot.offset;
}

bool KernelSet::Draws(int k) const {
  const std::vector<Resource>& requested = kernels_[k]->requested;
  return std::any_of(requested.begin(), requested.end(),
                     [](const Resource& r) { return r.type == ResourceRequest::kRandom; });
}

void KernelSet::PrepareDraws(std::span<const int> ks, RunContext run_ctx) {
  for (const int k : ks) {
    if (!Draws(k)) continue;
    const Context ctx = graph_.nodes[kernels_[k]->node].ctx;
    runtime_.resources().CountRandomRun(ctx);
    const auto found = random_on_.find(ctx);
    if (found == random_on_.end() || found->second.written == state_.random) continue;
    runtime_.backend(ctx).PutBytes(run_ctx, &state_.random, found->second.bytes.data().data,
                                   kRandomStateBytes);
    found->second.written = state_.random;
  }
}

bool KernelSet::Repeats(int k) const {
  const std::vector<Resource>& requested = kernels_[k]->requested;
  return std::none_of(requested.begin(), requested.end(),
                      [](const Resource& r) { return r.bytes == ResourceRequest::kUnknownSize; });
}

void KernelSet::Run(int k, RunContext run_ctx) {
  PrepareDraws({&k, 1}, run_ctx);
  Issue(k, run_ctx);
}

void KernelSet::Issue(int k, RunContext run_ctx) {
  RunStage(k, run_ctx, Stage::kWhole);
}

void KernelSet::Compute(const Kernel& kernel, const OpContext& ctx, Stage stage) {
  const ForwardArgs forward{ctx, kernel.in, kernel.req, kernel.out, kernel.aux};
  const BackwardArgs backward{ctx,        kernel.out_grad, kernel.in, kernel.out,
                              kernel.req, kernel.in_grad,  kernel.aux};
  const bool is_forward = graph_.nodes[kernel.node].kind == Node::Kind::kForward;
  if (stage == Stage::kWhole)
    return is_forward ? kernel.op->Forward(forward) : kernel.op->Backward(backward);
  auto& op = dynamic_cast<BatchSums&>(*kernel.op);
  const std::span sums(kernel.sums.data().dptr<double>(),
                       static_cast<size_t>(kernel.sums.shape().Size()));
  if (stage == Stage::kSum)
    return is_forward ? op.SumForward(forward, sums) : op.SumBackward(backward, sums);
  is_forward ? op.ForwardWith(forward, sums) : op.BackwardWith(backward, sums);
}

void KernelSet::RunStage(int k, RunContext run_ctx, Stage stage) {
  times_.Measure(kernels_[k]->name.c_str(), run_ctx, [&] { IssueWork(k, run_ctx, stage); });
  if (stage == Stage::kSum) return;
  const Kernel& kernel = *kernels_[k];
  const ExecNode& node = graph_.nodes[kernel.node];
  if (node.kind == Node::Kind::kCopy) return;  // its source was reported
  const bool second_run = node.forward >= 0 && node.kind != Node::Kind::kBackward;
  if (state_.monitor && !second_run) Report(kernel, run_ctx);
}

void KernelSet::IssueWork(int k, RunContext run_ctx, Stage stage) {
  Kernel& kernel = *kernels_[k];
  const ExecNode& node = graph_.nodes[kernel.node];
  switch (node.kind) {
    case Node::Kind::kForward:
    case Node::Kind::kBackward: {
      OpContext ctx;
      const ResourceGrant grant(runtime_.resources(), run_ctx, kernel.requested);
      ctx.is_train = is_train_;
      ctx.run_ctx = run_ctx;
      ctx.requested = kernel.requested;
      ctx.saved = kernel.saved;
      ctx.workspace = kernel.workspace;
      Compute(kernel, ctx, stage);
      break;
    }
    case Node::Kind::kReorder:
      runtime_.backend(node.ctx).Reorder(run_ctx, graph_.spec(node.inputs[0]), kernel.in[0].data,
                                         node.specs[0], kernel.out[0].data);
      break;
    case Node::Kind::kCopy: {
      const Context from = graph_.nodes[node.inputs[0].node].ctx;
      runtime_.backend(node.ctx).CopyBytes(run_ctx, from, kernel.in[0].data, node.ctx,
                                           kernel.out[0].data, node.specs[0].Bytes());
      break;
    }
    case Node::Kind::kZeros:
      if (node.req[0] == OpReqType::kWriteTo)
        runtime_.backend(node.ctx).Zero(run_ctx, kernel.out[0].data, node.specs[0].Bytes());
      break;
    default:
      MXTRAIN_ASSERT(false && "a node of this kind does not run");
  }
}

// The stored elements, readable by the host: in place, or a copy in `bytes`. Blocks until the
// device has copied.
TBlob KernelSet::OnHost(const TBlob& view, RunContext run_ctx, std::vector<char>* bytes) const {
  if (view.ctx.type != DeviceType::kGPU) return view;
  TBlob host = view;
  const int64_t size = view.layout.Bytes(view.shape, view.type);
  bytes->resize(static_cast<size_t>(size));
  host.data = bytes->data();
  host.ctx = Context::cpu();
  runtime_.backend(view.ctx).CopyBytes(run_ctx, view.ctx, view.data, host.ctx, host.data, size);
  const std::unique_ptr<Event> event = run_ctx.stream->NewEvent();
  run_ctx.stream->Record(*event);
  event->Wait();
  return host;
}

void KernelSet::Report(const Kernel& kernel, RunContext run_ctx) const {
  MutexLock lock(report_mutex_);
  const ExecNode& node = graph_.nodes[kernel.node];
  const bool backward = node.kind == Node::Kind::kBackward;
  const std::vector<TBlob>& views = backward ? kernel.in_grad : kernel.out;
  std::vector<std::string> names = backward  ? node.op->ListArguments()
                                   : node.op ? node.op->ListOutputs()
                                             : std::vector<std::string>{"output"};
  for (size_t i = 0; i < views.size(); ++i) {
    if (!views[i].data || kernel.req[i] == OpReqType::kNullOp || Derived(views[i].layout)) continue;
    const std::string name =
        format("{}_{}", node.name, i < names.size() ? names[i] : std::to_string(i));
    std::vector<char> copied;
    const TBlob stored = OnHost(views[i], run_ctx, &copied);
    if (stored.layout.plain()) {
      state_.monitor(name, stored);
      continue;
    }
    TBlob plain = stored;
    plain.layout = Layout();
    std::vector<char> bytes(static_cast<size_t>(plain.shape.Size() * SizeOf(plain.type)));
    plain.data = bytes.data();
    runtime_.backend(stored.ctx)
        .Reorder({stored.ctx, nullptr}, {stored.shape, stored.type, stored.layout}, stored.data,
                 {plain.shape, plain.type, Layout()}, plain.data);
    state_.monitor(name, plain);
  }
}

}  // namespace mxtrain::executor
