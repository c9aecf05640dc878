// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/internal/step_sequences.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <set>

#include "mxtrain/executor/executor.h"
#include "mxtrain/executor/gradient_buckets.h"
#include "mxtrain/operator/host_kernel.h"

namespace mxtrain::executor {
namespace {

constexpr int kOperatorSpaces = std::numeric_limits<int>::min();

}  // namespace

StepSequences::StepSequences(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                             ExternalBuffers& externals, const BindRequest& request,
                             const StepState& state)
    : runtime_(runtime),
      state_(state),
      graph_(graph),
      externals_(externals),
      capture_passes_(request.capture_passes),
      kernels_(graph, plan, externals.of_buffer(), runtime, request.is_train, state,
               request.divided_batch) {
  if (request.bucket_bytes > 0) {
    for (const GradientBucket& bucket : GradientBuckets(graph, request.bucket_bytes))
      bucket_ends_.push_back(bucket.last);
  }
  first_of_port_.resize(externals.num_ports());
  for (int i = externals.size(); i-- > 0;) {
    first_of_port_[externals[i].port] = i;
    if (!externals[i].array.empty()) kernels_.SetExternal(i, externals[i].array.data().data);
  }
  std::vector<int> kernels_of[4];
  for (int k = 0; k < kernels_.size(); ++k) {
    const ExecNode& node = graph.nodes[kernels_[k].node];
    kernels_of[node.precomputed     ? kPrecomputed
               : node.backward_pass ? kBackward
                                    : kForward]
        .push_back(k);
    if (!node.precomputed) kernels_of[kStep].push_back(k);
    if (node.precomputed) precomputed_.try_emplace(k);
  }
  Freeze(kForward, kernels_of[kForward]);
  if (!kernels_of[kPrecomputed].empty()) Freeze(kPrecomputed, kernels_of[kPrecomputed]);
  if (graph.first_backward < 0) return;
  Freeze(kBackward, kernels_of[kBackward]);
  Freeze(kStep, kernels_of[kStep]);
}

std::vector<StepSequences::Piece> StepSequences::Split(const std::vector<int>& kernel_ids) const {
  const auto node_of = [&](int k) -> const ExecNode& { return graph_.nodes[kernels_[k].node]; };
  const bool on_one_gpu =
      !kernel_ids.empty() && std::all_of(kernel_ids.begin(), kernel_ids.end(), [&](int k) {
        return node_of(k).ctx.type == DeviceType::kGPU &&
               node_of(k).ctx == node_of(kernel_ids[0]).ctx && !node_of(k).precomputed &&
               node_of(k).kind != Node::Kind::kCopy;
      });
  if (on_one_gpu && capture_passes_) return SplitCaptured(kernel_ids);
  std::vector<Piece> each;
  for (int k : kernel_ids) each.push_back({{k}, false});
  return each;
}

// The host kernel cannot be captured; what runs between two of them is, up to the end of a bucket.
std::vector<StepSequences::Piece> StepSequences::SplitCaptured(
    const std::vector<int>& kernel_ids) const {
  const auto bucket_of = [&](int k) {
    return std::lower_bound(bucket_ends_.begin(), bucket_ends_.end(), kernels_[k].node);
  };
  std::vector<Piece> pieces;
  for (int k : kernel_ids) {
    const ExecNode& node = graph_.nodes[kernels_[k].node];
    const bool captured = !node.plan || !RunsOnHost(*node.plan);
    const bool continues = !pieces.empty() && captured && pieces.back().captured &&
                           bucket_of(k) == bucket_of(pieces.back().kernels.back());
    if (!continues) pieces.push_back({{}, captured});
    pieces.back().kernels.push_back(k);
  }
  return pieces;
}

// Arrays of one variable may share bytes: they are one space, of addresses.
ByteRange StepSequences::Located(ByteRange range) const {
  if (range.space <= 0) return range;
  const ExternalBuffer& external = externals_[range.space - 1];
  if (external.array.empty()) return range;
  const auto address = reinterpret_cast<int64_t>(external.array.data().data);
  return {first_of_port_[external.port] + 1, address + range.begin, address + range.end};
}

Access StepSequences::AccessOf(const Piece& piece) const {
  Access all;
  for (int k : piece.kernels) {
    for (const ByteRange& r : kernels_.access(k).reads) all.reads.push_back(Located(r));
    for (const ByteRange& w : kernels_.access(k).writes) all.writes.push_back(Located(w));
    // An Operator runs one call at a time, and may keep state from Forward to Backward.
    const ExecNode& node = graph_.nodes[kernels_[k].node];
    const int forward = node.forward >= 0 ? node.forward : kernels_[k].node;
    if (kernels_[k].op) all.writes.push_back({kOperatorSpaces + forward, 0, 1});
  }
  return all;
}

// Ports whose arrays a run of the kernels, in this order, overwrites completely before reading: the
// run renews them. Others keep earlier contents: accumulated gradients, auxiliary states, parts of
// a larger array.
std::set<int> StepSequences::OverwrittenPorts(const std::vector<Piece>& pieces) const {
  std::set<int> touched, overwritten, others;
  const auto touch = [&](const ByteRange& range, bool writes) {
    if (range.space <= 0 || !touched.insert(range.space).second) return;
    const ExternalBuffer& external = externals_[range.space - 1];
    const bool whole = writes && !external.array.empty() && external.array.IsWhole() &&
                       range.end >= external.array.spec().Bytes();
    (whole ? overwritten : others).insert(external.port);
  };
  for (const Piece& piece : pieces) {
    for (int k : piece.kernels) {
      for (const ByteRange& range : kernels_.access(k).reads) touch(range, false);
      for (const ByteRange& range : kernels_.access(k).writes) touch(range, true);
    }
  }
  for (int port : others) overwritten.erase(port);
  return overwritten;
}

// Without its edges and ports.
engine::SequenceOp StepSequences::OperationOf(const Piece& piece) {
  const int k = piece.kernels[0];
  const ExecNode& node = graph_.nodes[kernels_[k].node];
  engine::SequenceOp op;
  op.name = kernels_[k].name;
  op.ctx = node.ctx;
  op.priority = kStepPriority;
  if (node.kind == Node::Kind::kCopy) {
    // As NDArray::CopyFrom: the GPU that is left copies.
    const Context from = graph_.nodes[node.inputs[0].node].ctx;
    const bool leaves_gpu = from.type == DeviceType::kGPU;
    op.ctx = leaves_gpu ? from : node.ctx;
    op.property =
        leaves_gpu ? engine::FnProperty::kCopyFromDevice : engine::FnProperty::kCopyToDevice;
  }
  op.fn = [this, k](RunContext ctx) { kernels_.Run(k, ctx); };
  if (node.precomputed) op.fn = [this, k](RunContext ctx) { RunPrecomputed(k, ctx); };
  if (piece.stage != Stage::kWhole) {
    op.fn = [this, k, stage = piece.stage](RunContext ctx) { kernels_.RunStage(k, ctx, stage); };
  }
  if (piece.captured) {
    op.name = "step";
    op.fn = [kernels = std::make_unique<CapturedKernels>(runtime_, kernels_, piece.kernels)](
                RunContext ctx) { kernels->Run(ctx); };
  }
  return op;
}

// Cut where a kernel needs sums over all parts of the batch.
void StepSequences::Freeze(Part part, const std::vector<int>& kernel_ids) {
  std::vector<Piece> pieces;
  for (Piece& piece : Split(kernel_ids)) {
    const Kernel& kernel = kernels_[piece.kernels[0]];
    if (!kernel.sums.empty()) {
      piece.stage = Stage::kContinue;
      if (!kernel.sums_given) {
        pieces.push_back({piece.kernels, false, Stage::kSum});
        parts_[part].push_back(Freeze(pieces));
        sums_[part].push_back(kernel.sums);
        pieces.clear();
      }
    }
    pieces.push_back(std::move(piece));
  }
  parts_[part].push_back(Freeze(pieces));
}

StepSequences::Frozen StepSequences::Freeze(const std::vector<Piece>& pieces) {
  std::vector<Access> accesses;
  for (const Piece& piece : pieces) accesses.push_back(AccessOf(piece));
  const auto edges = FindEdges(accesses);
  const int arena = externals_.arena_port();
  const std::set<int> overwritten = OverwrittenPorts(pieces);
  std::vector<engine::SequenceOp> ops;
  Frozen frozen;
  std::vector<int> local(externals_.num_ports(), -1);
  auto localize = [&](const std::set<int>& ports, std::vector<int>* out) {
    for (int port : ports) {
      if (local[port] < 0) {
        local[port] = static_cast<int>(frozen.ports.size());
        frozen.ports.push_back(port);
      }
      out->push_back(local[port]);
    }
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    engine::SequenceOp op = OperationOf(pieces[i]);
    op.after = edges[i];
    std::set<int> reads, writes{arena};
    for (const ByteRange& r : accesses[i].reads) {
      if (r.space > 0) reads.insert(externals_[r.space - 1].port);
    }
    for (const ByteRange& w : accesses[i].writes) {
      if (w.space > 0) writes.insert(externals_[w.space - 1].port);
    }
    for (int port : writes) reads.erase(port);
    localize(reads, &op.reads);
    localize(writes, &op.writes);
    std::copy_if(op.writes.begin(), op.writes.end(), std::back_inserter(op.renews),
                 [&](int port) { return overwritten.contains(frozen.ports[port]); });
    ops.push_back(std::move(op));
  }
  const auto port_of_sums = [&](const NDArray& sums) {
    const auto found = std::find(frozen.sums.begin(), frozen.sums.end(), sums.var());
    const auto port = frozen.ports.size() + static_cast<size_t>(found - frozen.sums.begin());
    if (found == frozen.sums.end()) frozen.sums.push_back(sums.var());
    return static_cast<int>(port);
  };
  for (size_t i = 0; i < pieces.size(); ++i) {
    if (pieces[i].stage == Stage::kWhole) continue;
    const int port = port_of_sums(kernels_[pieces[i].kernels[0]].sums);
    if (pieces[i].stage == Stage::kContinue) {
      ops[i].reads.push_back(port);
    } else {
      ops[i].writes.push_back(port);
      ops[i].renews.push_back(port);
    }
  }
  engine::Engine& engine = runtime_.engine();
  const size_t ports = frozen.ports.size() + frozen.sums.size();
  frozen.handle = {engine.NewSequence(std::move(ops), static_cast<int>(ports)),
                   [&engine](engine::SequenceHandle handle) { engine.DeleteSequence(handle); }};
  return frozen;
}

void StepSequences::Push(Part part, engine::VarHandle arena) {
  for (size_t piece = 0; piece < parts_[part].size(); ++piece) PushPiece(part, piece, arena);
}

void StepSequences::PushPiece(Part part, size_t piece, engine::VarHandle arena) {
  const Frozen& frozen = parts_[part][piece];
  externals_.SetPort(externals_.arena_port(), arena);
  vars_.clear();
  for (int port : frozen.ports) vars_.push_back(externals_.port_var(port));
  vars_.insert(vars_.end(), frozen.sums.begin(), frozen.sums.end());
  runtime_.engine().Push(frozen.handle.get(), vars_);
}

Precomputation StepSequences::PlanPrecomputed(const BoundArrays& arrays) {
  if (precomputed_.empty()) return {};
  uint64_t version = 1;
  for (const ArrayMap* named : {&arrays.args, &arrays.auxs}) {
    for (const auto& [name, array] : *named) version += runtime_.engine().Version(array.var());
  }
  const auto passed = [this](const auto& entry) {
    return entry.second.passed == precomputation_.number;
  };
  precomputation_due_ = version != precomputation_.version ||
                        !std::all_of(precomputed_.begin(), precomputed_.end(), passed);
  if (precomputation_due_) precomputation_ = {version, precomputation_.number + 1};
  return precomputation_;
}

void StepSequences::PushPrecomputed(engine::VarHandle arena) {
  if (precomputation_due_) Push(kPrecomputed, arena);
  precomputation_due_ = false;
}

// The result of an earlier push for this version is reused. A skipped push does not get here.
void StepSequences::RunPrecomputed(int kernel, RunContext ctx) {
  PrecomputedState& state = precomputed_.at(kernel);
  const Precomputation wanted = state_.precomputation;
  if (state.made_of != wanted.version) kernels_.Run(kernel, ctx);
  state.made_of = wanted.version;
  state.passed = wanted.number;
}

}  // namespace mxtrain::executor
