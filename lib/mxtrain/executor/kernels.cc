// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/kernels.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/device/derived_layout.h"
#include "mxtrain/ndarray/runtime.h"

namespace mxtrain::executor {

KernelSet::KernelSet(const ExecGraph& graph, const MemoryPlan& plan,
                     const std::vector<int>& external_of, Runtime& runtime, bool is_train,
                     const StepState& state)
    : graph_(graph),
      plan_(plan),
      external_of_(external_of),
      runtime_(runtime),
      is_train_(is_train),
      state_(state),
      operators_(graph.nodes.size()) {
  int externals = 0;
  for (int external : external_of) externals = std::max(externals, external + 1);
  external_slots_.resize(externals);
  addresses_.resize(static_cast<size_t>(externals) + 1);
  for (int id = 0; id < static_cast<int>(graph.nodes.size()); ++id) {
    if (plan.runs[id]) AddNode(id);
  }
}

void KernelSet::PlaceView(TBlob* view, int buffer) {
  if (external_of_[buffer] >= 0) {
    external_slots_[external_of_[buffer]].push_back({view, 0});
  } else {
    arena_slots_.push_back({view, plan_.buffers[buffer].offset});
  }
}

void KernelSet::Touch(NodeEntry entry, Use use) {
  const int buffer = plan_.buffer_of[entry.node][entry.index];
  MXTRAIN_ASSERT(buffer >= 0);
  const Buffer& b = plan_.buffers[buffer];
  const ByteRange range = external_of_[buffer] >= 0 ? ByteRange{external_of_[buffer] + 1, 0,
                                                                std::max<int64_t>(b.bytes, 1)}
                                                    : ByteRange{0, b.offset, b.offset + b.bytes};
  Access& access = accesses_.back();
  if (use != Use::kWrite) access.reads.push_back(range);
  if (use != Use::kRead) access.writes.push_back(range);
}

void KernelSet::AddNode(int id) {
  const ExecNode& node = graph_.nodes[id];
  auto kernel = std::make_unique<Kernel>();
  kernel->node = id;
  kernel->name = node.name;
  accesses_.emplace_back();
  if (node.plan) {
    const int owner = node.forward >= 0 ? node.forward : id;
    if (!operators_[owner]) operators_[owner] = node.plan->make();
    kernel->op = operators_[owner];
  }

  // Views are registered only when all vectors are complete, so their addresses are stable.
  struct Place {
    std::vector<TBlob>* views;
    size_t index;
    NodeEntry entry;
    Use use;
  };
  std::vector<Place> places;
  auto add = [&](std::vector<TBlob>* views, NodeEntry entry, const TensorSpec& spec, Use use) {
    views->push_back({nullptr, spec.shape, spec.type, spec.layout, node.ctx});
    if (entry) places.push_back({views, views->size() - 1, entry, use});
  };
  auto add_outputs = [&](std::vector<TBlob>* views, int count) {
    for (int i = 0; i < count; ++i) {
      OpReqType req = node.req[i];
      if (plan_.inplace[id][i]) req = OpReqType::kWriteInplace;
      if (plan_.aliased[id][i]) req = OpReqType::kNullOp;
      kernel->req.push_back(req);
      const bool gone = req == OpReqType::kNullOp;
      add(views, gone ? NodeEntry{} : NodeEntry{id, i}, node.specs[i],
          req == OpReqType::kAddTo ? Use::kReadWrite : Use::kWrite);
    }
  };

  if (node.kind == Node::Kind::kBackward) {
    const ExecNode& forward = graph_.nodes[node.forward];
    const int outputs = forward.op->NumOutputs(), args = forward.num_args, aux = forward.num_aux();
    int next = 0;
    for (int i = 0; i < outputs; ++i, ++next)
      add(&kernel->out_grad, node.inputs[next], forward.specs[i], Use::kRead);
    for (int i = 0; i < args; ++i, ++next) {
      const NodeEntry e = node.inputs[next];
      add(&kernel->in, e, e ? graph_.spec(e) : graph_.spec(forward.inputs[i]), Use::kRead);
    }
    for (int i = 0; i < outputs; ++i, ++next)
      add(&kernel->out, node.inputs[next], forward.specs[i], Use::kRead);
    for (int i = 0; i < aux; ++i, ++next)
      add(&kernel->aux, node.inputs[next], graph_.spec(node.inputs[next]), Use::kReadWrite);
    for (; next < static_cast<int>(node.inputs.size()); ++next) {
      add(&kernel->saved, node.inputs[next], graph_.spec(node.inputs[next]), Use::kRead);
    }
    add_outputs(&kernel->in_grad, args);
  } else {
    const int args =
        node.kind == Node::Kind::kForward ? node.num_args : static_cast<int>(node.inputs.size());
    for (int i = 0; i < static_cast<int>(node.inputs.size()); ++i) {
      const bool is_aux = i >= args;
      add(is_aux ? &kernel->aux : &kernel->in, node.inputs[i], graph_.spec(node.inputs[i]),
          is_aux && is_train_ ? Use::kReadWrite : Use::kRead);
    }
    add_outputs(&kernel->out, node.num_outputs());
    for (int i = node.num_outputs(); i < static_cast<int>(node.specs.size()); ++i) {
      add(&kernel->saved, {id, i}, node.specs[i], Use::kWrite);
    }
  }
  for (const Place& place : places) {
    PlaceView(&(*place.views)[place.index], plan_.buffer_of[place.entry.node][place.entry.index]);
    Touch(place.entry, place.use);
  }

  auto scratch = [&](int buffer) {
    const Buffer& b = plan_.buffers[buffer];
    accesses_.back().writes.push_back({0, b.offset, b.offset + b.bytes});
    return b;
  };
  if (plan_.workspace_of[id] >= 0) {
    const Buffer b = scratch(plan_.workspace_of[id]);
    kernel->workspace = {nullptr, TShape{b.bytes}, DType::kUint8, Layout(), node.ctx};
    arena_slots_.push_back({&kernel->workspace, b.offset});
  }
  const std::vector<int>& temps = plan_.temp_space_of[id];
  kernel->requested.resize(temps.size());
  for (size_t i = 0; i < temps.size(); ++i) {
    Resource& r = kernel->requested[i];
    r.who = kernel->name.c_str();
    if (temps[i] == MemoryPlan::kNoTempSpace) {
      r.type = ResourceRequest::kRandom;
      r.random = &state_.random;
      // A backward pass and a recomputation repeat the draws of the first run.
      const std::string& stream = node.forward >= 0 ? graph_.nodes[node.forward].name : node.name;
      r.stream = StreamOf(stream, static_cast<uint64_t>(state_.replica));
    } else if (temps[i] >= 0) {
      const Buffer b = scratch(temps[i]);
      r.type = ResourceRequest::kTempSpace;
      r.bytes = b.bytes;
      temp_slots_.push_back({&r, b.offset});
    }
  }
  kernels_.push_back(std::move(kernel));
}

void KernelSet::SetArena(void* base) {
  addresses_[0] = base;
  char* bytes = static_cast<char*>(base);
  for (const Slot& slot : arena_slots_) slot.view->data = bytes + slot.offset;
  for (const TempSlot& slot : temp_slots_) slot.resource->space = bytes + slot.offset;
}

void KernelSet::SetExternal(int external, void* data) {
  addresses_[static_cast<size_t>(external) + 1] = data;
  for (const Slot& slot : external_slots_[external])
    slot.view->data = static_cast<char*>(data) + slot.offset;
}

bool KernelSet::DrawsRandomNumbers(int k) const {
  const std::vector<Resource>& requested = kernels_[k]->requested;
  return std::any_of(requested.begin(), requested.end(),
                     [](const Resource& r) { return r.type == ResourceRequest::kRandom; });
}

void KernelSet::Run(int k, RunContext run_ctx) {
  Kernel& kernel = *kernels_[k];
  const ExecNode& node = graph_.nodes[kernel.node];
  switch (node.kind) {
    case Node::Kind::kForward:
    case Node::Kind::kBackward: {
      OpContext ctx;
      ctx.is_train = is_train_;
      ctx.run_ctx = run_ctx;
      ctx.requested = kernel.requested;
      ctx.saved = kernel.saved;
      ctx.workspace = kernel.workspace;
      if (node.kind == Node::Kind::kForward) {
        kernel.op->Forward(ctx, kernel.in, kernel.req, kernel.out, kernel.aux);
      } else {
        kernel.op->Backward(ctx, kernel.out_grad, kernel.in, kernel.out, kernel.req, kernel.in_grad,
                            kernel.aux);
      }
      break;
    }
    case Node::Kind::kReorder:
      runtime_.backend(node.ctx).Reorder(run_ctx, graph_.spec(node.inputs[0]), kernel.in[0].data,
                                         node.specs[0], kernel.out[0].data);
      break;
    case Node::Kind::kZeros:
      if (node.req[0] == OpReqType::kWriteTo)
        runtime_.backend(node.ctx).Zero(run_ctx, kernel.out[0].data, node.specs[0].Bytes());
      break;
    default:
      MXTRAIN_ASSERT(false && "a node of this kind does not run");
  }
  const bool second_run = node.forward >= 0 && node.kind != Node::Kind::kBackward;
  if (state_.monitor && !second_run) Report(kernel, run_ctx);
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
