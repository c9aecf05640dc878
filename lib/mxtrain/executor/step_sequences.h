#pragma once
// The kernels of a bound net as frozen sequences of the engine: one for the forward pass, one for the backward pass, one for both, and one
// for the arrays that follow from parameters alone. Each kernel is an operation; on one GPU, whose stream orders them anyway, a pass is one
// that is captured (captured_kernels.h), unless the request wants gradients as they come.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "mxtrain/executor/kernels.h"
#include "mxtrain/executor/external_buffers.h"
#include "mxtrain/executor/captured_kernels.h"

namespace mxtrain::executor {

// Between two operations of a step everything else that is ready goes first: updates and copies then overlap with the rest of the step.
inline constexpr int kStepPriority = -1'000'000;

class StepSequences {
 public:
  enum Part { kForward, kBackward, kStep, kPrecomputed };

  // All arguments must outlive the sequences, and these whatever was pushed: the caller waits for that before the end.
  StepSequences(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan, ExternalBuffers& externals, const BindRequest& request,
                const StepState& state);

  KernelSet& kernels() { return kernels_; }
  bool has_backward() const { return static_cast<bool>(parts_[kBackward].handle); }

  // `arena`: the variable of the arena. The ports of inputs must have been set.
  void Push(Part part, engine::VarHandle arena);
  // Before a forward pass, whose state must hold the result: decides whether the derived arrays must be made. They must where a write to a
  // parameter was pushed since, and where the last push that was to make them is not known to have come through: it failed, was skipped, or
  // is still to run.
  Precomputation PlanPrecomputed(const BoundArrays& arrays);
  // After that, and what was decided.
  void PushPrecomputed(engine::VarHandle arena);

 private:
  // Its own port i is ports[i] of the outer arrays.
  struct Frozen {
    std::unique_ptr<engine::Sequence, std::function<void(engine::SequenceHandle)>> handle;
    std::vector<int> ports;
  };
  // What becomes one operation.
  struct Piece {
    std::vector<int> kernels;
    bool captured = false;
  };
  std::vector<Piece> Cut(const std::vector<int>& kernel_ids) const;
  Access AccessOf(const Piece& piece) const;
  std::set<int> OverwrittenPorts(const std::vector<int>& kernel_ids) const;
  engine::SequenceOp OperationOf(const Piece& piece);
  Frozen Freeze(const std::vector<int>& kernel_ids);
  void RunPrecomputed(int kernel, RunContext ctx);

  Runtime& runtime_;
  const StepState& state_;
  const ExecGraph& graph_;
  ExternalBuffers& externals_;
  const bool capture_passes_;
  KernelSet kernels_;
  Frozen parts_[4];
  std::vector<engine::VarHandle> vars_;  // of the ports of the part that is pushed
  Precomputation precomputation_;                // the last one that was planned
  bool precomputation_due_ = false;
  // Of the kernels that make derived arrays.
  struct Derived {
    uint64_t made_of = 0;              // the version that its arrays follow from; of the thread that computes
    std::atomic<uint64_t> passed = 0;  // number of the last push that came through
  };
  std::map<int, Derived> precomputed_;  // by kernel
};

}  // namespace mxtrain::executor
