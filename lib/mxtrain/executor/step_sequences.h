#pragma once
// The kernels of a bound net as frozen sequences of the engine: one for the forward pass, one for the backward pass, one for both, and one
// for the arrays that follow from parameters alone. Each kernel is an operation; on one GPU, whose stream orders them anyway, a pass is one
// that is recorded (recorded_kernels.h), unless the request wants gradients as they come.
#include <atomic>
#include <memory>
#include <vector>

#include "mxtrain/executor/kernels.h"
#include "mxtrain/executor/outer_arrays.h"
#include "mxtrain/executor/recorded_kernels.h"

namespace mxtrain::executor {

// Between two operations of a step everything else that is ready goes first: updates and copies then overlap with the rest of the step.
inline constexpr int kStepPriority = -1'000'000;

class StepSequences {
 public:
  enum Part { kForward, kBackward, kStep, kDerived };

  // All arguments must outlive the sequences, and these whatever was pushed: the caller waits for that before the end.
  StepSequences(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan, OuterArrays& outers, const BindRequest& request,
                const StepState& state);
  ~StepSequences();

  KernelSet& kernels() { return kernels_; }
  bool has_backward() const { return parts_[kBackward].handle != nullptr; }

  // `arena`: the variable of the arena. The ports of inputs must have been set.
  void Push(Part part, engine::VarHandle arena);
  // Brings the derived arrays up to date when a parameter was written since they were made, or when making them failed.
  void PushDerived(const BoundArrays& arrays, engine::VarHandle arena);

 private:
  // Its own port i is ports[i] of the outer arrays.
  struct Frozen {
    engine::SequenceHandle handle = nullptr;
    std::vector<int> ports;
  };
  // What becomes one operation.
  struct Piece {
    std::vector<int> kernels;
    bool recorded = false;
  };
  std::vector<Piece> Cut(const std::vector<int>& kernel_ids) const;
  Access AccessOf(const Piece& piece) const;
  engine::SequenceOp OperationOf(const Piece& piece);
  Frozen Freeze(const std::vector<int>& kernel_ids);
  void RunDerived(int kernel, RunContext ctx);

  Runtime& runtime_;
  const ExecGraph& graph_;
  OuterArrays& outers_;
  const bool whole_passes_;
  KernelSet kernels_;
  Frozen parts_[4];
  std::vector<engine::VarHandle> vars_;  // of the ports of the part that is pushed
  uint64_t derived_version_ = 0;  // sum of the versions of the parameters when derived arrays were last made
  bool derived_made_ = false;
  std::atomic<bool> derived_failed_{false};
};

}  // namespace mxtrain::executor
