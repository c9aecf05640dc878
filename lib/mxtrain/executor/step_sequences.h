#pragma once
// The kernels of a bound net as frozen sequences of the engine: one for the forward pass, one for the backward pass, one for both, and one
// for the arrays that follow from parameters alone. Each kernel is an operation; on one GPU, whose stream orders them anyway, a pass is one
// that is recorded (recorded_kernels.h), unless the request wants gradients as they come.
#include <atomic>
#include <functional>
#include <memory>
#include <set>
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

  KernelSet& kernels() { return kernels_; }
  bool has_backward() const { return static_cast<bool>(parts_[kBackward].handle); }

  // `arena`: the variable of the arena. The ports of inputs must have been set.
  void Push(Part part, engine::VarHandle arena);
  // Of what derived arrays are made of: changes with each write to a parameter that was pushed; 0 where there are none. It must be in the state of the
  // run before which derived arrays are pushed.
  uint64_t ParameterVersion(const BoundArrays& arrays) const;
  // Makes the derived arrays that are not known to hold what follows from this version of the parameters: none was made of it yet, or the run that was
  // to make it failed or was skipped.
  void PushDerived(uint64_t version, engine::VarHandle arena);

 private:
  // Its own port i is ports[i] of the outer arrays.
  struct Frozen {
    std::unique_ptr<engine::Sequence, std::function<void(engine::SequenceHandle)>> handle;
    std::vector<int> ports;
  };
  // What becomes one operation.
  struct Piece {
    std::vector<int> kernels;
    bool recorded = false;
  };
  std::vector<Piece> Cut(const std::vector<int>& kernel_ids) const;
  Access AccessOf(const Piece& piece) const;
  std::set<int> OverwrittenPorts(const std::vector<int>& kernel_ids) const;
  engine::SequenceOp OperationOf(const Piece& piece);
  Frozen Freeze(const std::vector<int>& kernel_ids);
  void RunDerived(int kernel, RunContext ctx);

  Runtime& runtime_;
  const StepState& state_;
  const ExecGraph& graph_;
  OuterArrays& outers_;
  const bool whole_passes_;
  KernelSet kernels_;
  Frozen parts_[4];
  std::vector<engine::VarHandle> vars_;  // of the ports of the part that is pushed
  // [kernel]: of derived arrays, the version of the parameters that they follow from. Written where they are made.
  std::vector<std::atomic<uint64_t>> made_of_;
};

}  // namespace mxtrain::executor
