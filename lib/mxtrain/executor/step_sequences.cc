#include "mxtrain/executor/step_sequences.h"

#include <algorithm>
#include <iterator>
#include <set>

namespace mxtrain::executor {

StepSequences::StepSequences(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan, OuterArrays& outers,
                             const BindRequest& request, const StepState& state)
    : runtime_(runtime),
      graph_(graph),
      outers_(outers),
      whole_passes_(request.whole_passes),
      kernels_(graph, plan, outers.of_buffer(), runtime, request.is_train, state) {
  for (int i = 0; i < outers.size(); ++i) {
    if (!outers[i].array.empty()) kernels_.SetOuter(i, outers[i].array.data().data);
  }
  std::vector<int> kernels_of[4];
  for (int k = 0; k < kernels_.size(); ++k) {
    const ExecNode& node = graph.nodes[kernels_[k].node];
    kernels_of[node.derived ? kDerived : node.backward_pass ? kBackward : kForward].push_back(k);
    if (!node.derived) kernels_of[kStep].push_back(k);
  }
  parts_[kForward] = Freeze(kernels_of[kForward]);
  if (!kernels_of[kDerived].empty()) parts_[kDerived] = Freeze(kernels_of[kDerived]);
  if (graph.first_backward < 0) return;
  parts_[kBackward] = Freeze(kernels_of[kBackward]);
  parts_[kStep] = Freeze(kernels_of[kStep]);
}

StepSequences::~StepSequences() {
  for (const Frozen& part : parts_) {
    if (part.handle) runtime_.engine().DeleteSequence(part.handle);
  }
}

std::vector<StepSequences::Piece> StepSequences::Cut(const std::vector<int>& kernel_ids) const {
  const auto node_of = [&](int k) -> const ExecNode& { return graph_.nodes[kernels_[k].node]; };
  const bool on_one_gpu = !kernel_ids.empty() && std::all_of(kernel_ids.begin(), kernel_ids.end(), [&](int k) {
    return node_of(k).ctx.type == DeviceType::kGPU && node_of(k).ctx == node_of(kernel_ids[0]).ctx && !node_of(k).derived;
  });
  if (on_one_gpu && whole_passes_) return {{kernel_ids, true}};
  std::vector<Piece> each;
  for (int k : kernel_ids) each.push_back({{k}, false});
  return each;
}

Access StepSequences::AccessOf(const Piece& piece) const {
  Access all;
  for (int k : piece.kernels) {
    const Access& a = kernels_.access(k);
    all.reads.insert(all.reads.end(), a.reads.begin(), a.reads.end());
    all.writes.insert(all.writes.end(), a.writes.begin(), a.writes.end());
  }
  return all;
}

// Without its edges and ports.
engine::SequenceOp StepSequences::OperationOf(const Piece& piece) {
  const int k = piece.kernels[0];
  const ExecNode& node = graph_.nodes[kernels_[k].node];
  engine::SequenceOp op;
  op.name = kernels_[k].name;
  op.ctx = node.ctx;
  op.priority = kStepPriority;
  op.fn = [this, k](RunContext ctx) { kernels_.Run(k, ctx); };
  if (node.derived) op.fn = [this, k](RunContext ctx) { RunDerived(k, ctx); };
  if (piece.recorded) {
    op.name = "step";
    op.fn = [kernels = std::make_unique<RecordedKernels>(kernels_, piece.kernels)](RunContext ctx) { kernels->Run(ctx); };
  }
  return op;
}

StepSequences::Frozen StepSequences::Freeze(const std::vector<int>& kernel_ids) {
  const std::vector<Piece> pieces = Cut(kernel_ids);
  std::vector<Access> accesses;
  for (const Piece& piece : pieces) accesses.push_back(AccessOf(piece));
  const auto edges = FindEdges(accesses);
  const int arena = outers_.arena_port();
  std::vector<engine::SequenceOp> ops;
  Frozen frozen;
  std::vector<int> local(outers_.num_ports(), -1);
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
      if (r.space > 0) reads.insert(outers_[r.space - 1].port);
    }
    for (const ByteRange& w : accesses[i].writes) {
      if (w.space > 0) writes.insert(outers_[w.space - 1].port);
    }
    for (int port : writes) reads.erase(port);
    localize(reads, &op.reads);
    localize(writes, &op.writes);
    // A run writes its arrays anew; what the arena holds may be of a Forward that failed.
    std::copy_if(op.writes.begin(), op.writes.end(), std::back_inserter(op.renews), [&](int port) { return port != local[arena]; });
    ops.push_back(std::move(op));
  }
  frozen.handle = runtime_.engine().NewSequence(std::move(ops), static_cast<int>(frozen.ports.size()));
  return frozen;
}

void StepSequences::Push(Part part, engine::VarHandle arena) {
  outers_.SetPort(outers_.arena_port(), arena);
  vars_.clear();
  for (int port : parts_[part].ports) vars_.push_back(outers_.port_var(port));
  runtime_.engine().Push(parts_[part].handle, vars_);
}

void StepSequences::PushDerived(const BoundArrays& arrays, engine::VarHandle arena) {
  if (!parts_[kDerived].handle) return;
  uint64_t version = 0;
  for (const ArrayMap* named : {&arrays.args, &arrays.auxs}) {
    for (const auto& [name, array] : *named) version += runtime_.engine().Version(array.var());
  }
  if (!derived_failed_.exchange(false) && derived_made_ && version == derived_version_) return;
  derived_made_ = true;
  derived_version_ = version;
  Push(kDerived, arena);
}

void StepSequences::RunDerived(int kernel, RunContext ctx) {
  try {
    kernels_.Run(kernel, ctx);
  } catch (...) {
    derived_failed_ = true;
    throw;
  }
}

}  // namespace mxtrain::executor
