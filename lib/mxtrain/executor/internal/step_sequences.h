// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of a bound net as frozen sequences of the engine: one for the forward pass, one for
// the backward pass, one for both, and one for the precomputed parameters. Each kernel is an
// operation; on one GPU, whose stream orders them anyway, a pass is one captured operation
// (captured_kernels.h), or several: with the kernels that run on the host between them, and cut
// where a bucket of gradients is complete, if the request wants buckets.
#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "mxtrain/executor/internal/captured_kernels.h"
#include "mxtrain/executor/internal/external_buffers.h"
#include "mxtrain/executor/kernels.h"

namespace mxtrain::executor {

class StepSequences {
 public:
  enum Part { kForward, kBackward, kStep, kPrecomputed };

  // All arguments must outlive the sequences, and these everything that was pushed: the caller
  // waits before destruction.
  StepSequences(Runtime& runtime, const ExecGraph& graph, const MemoryPlan& plan,
                ExternalBuffers& externals, const BindRequest& request, const StepState& state);

  KernelSet& kernels() { return kernels_; }
  bool has_backward() const { return !parts_[kBackward].empty(); }

  // `arena`: the variable of the arena. The ports of inputs must have been set.
  void Push(Part part, engine::VarHandle arena);
  // A part with sums over all parts of a batch consists of one sequence more than sums: piece i
  // writes sum i, the next one reads it.
  const std::vector<NDArray>& sums(Part part) const { return sums_[part]; }
  void PushPiece(Part part, size_t piece, engine::VarHandle arena);
  // Before a forward pass, whose state must hold the result: decides whether the precomputed
  // parameters must be recomputed. They must if a write to a parameter was pushed since, or if the
  // last push that computes them is not known to have succeeded: it failed, was skipped, or has not
  // run.
  Precomputation PlanPrecomputed(const BoundArrays& arrays);
  // After that; pushes the computation if it is due.
  void PushPrecomputed(engine::VarHandle arena);

 private:
  // Its port i is ports[i] of the external buffers; those of `sums` follow.
  struct Frozen {
    std::unique_ptr<engine::Sequence, std::function<void(engine::SequenceHandle)>> handle;
    std::vector<int> ports;
    std::vector<engine::VarHandle> sums;
  };
  // The kernels of one operation.
  struct Piece {
    std::vector<int> kernels;
    bool captured = false;
    Stage stage = Stage::kWhole;
  };
  std::vector<Piece> Split(const std::vector<int>& kernel_ids) const;
  std::vector<Piece> SplitCaptured(const std::vector<int>& kernel_ids) const;
  ByteRange Located(ByteRange range) const;
  Access AccessOf(const Piece& piece) const;
  std::set<int> OverwrittenPorts(const std::vector<Piece>& pieces) const;
  engine::SequenceOp OperationOf(const Piece& piece);
  void Freeze(Part part, const std::vector<int>& kernel_ids);
  Frozen Freeze(const std::vector<Piece>& pieces);
  void RunPrecomputed(int kernel, RunContext ctx);

  Runtime& runtime_;
  const StepState& state_;
  const ExecGraph& graph_;
  ExternalBuffers& externals_;
  const bool capture_passes_;
  std::vector<int> bucket_ends_;  // nodes that complete a bucket of gradients, ascending
  KernelSet kernels_;
  std::vector<int> first_of_port_;  // [port]: the first external buffer that has it
  std::vector<Frozen> parts_[4];
  std::vector<NDArray> sums_[4];
  std::vector<engine::VarHandle> vars_;  // of the ports of the pushed part
  Precomputation precomputation_;        // the last one planned
  bool precomputation_due_ = false;
  // Of a kernel that computes precomputed parameters.
  struct PrecomputedState {
    uint64_t made_of = 0;  // parameter version of its arrays; used by the computing thread
    std::atomic<uint64_t> passed = 0;  // number of the last push that succeeded
  };
  std::map<int, PrecomputedState> precomputed_;  // by kernel
};

}  // namespace mxtrain::executor
