// SPDX-License-Identifier: Apache-2.0
#pragma once
// Runs a symbol: forward, backward, or both as one step. Created by binding the symbol to arrays;
// passes and memory planning run once, at that time.
//
// Calls push work to the engine and return; results are read after a wait on the arrays. One thread
// at a time may use an executor; several steps may be in flight. The executor must not outlive its
// Runtime.
//
// With groups of layers on several devices (BindRequest::group2ctx) parameters, gradients,
// auxiliary states and outputs are on the device of their layers, and inputs are accepted from any
// device.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {
namespace executor {

// The engine's priority of a step's operations. Lower than everything else: updates and copies run
// between them and so overlap with the step.
inline constexpr int kStepPriority = -1'000'000;

}  // namespace executor

class MXTRAIN_API Executor {
 public:
  using BindRequest = executor::BindRequest;

  // Binds to given arrays. `args` and `aux` must hold every argument that is not in request.inputs,
  // and every auxiliary state; `grads` every argument with a grad_req. Their layouts are kept. With
  // `shared`, both executors use one arena and must not run concurrently. Throws kConfig naming
  // what is missing, or the array whose shape, type or device differs from `request`.
  static std::unique_ptr<Executor> Bind(Runtime& runtime, const Symbol& symbol, BindRequest request,
                                        const std::map<std::string, NDArray>& args,
                                        const std::map<std::string, NDArray>& grads,
                                        const std::map<std::string, NDArray>& aux,
                                        Executor* shared = nullptr);
  // Allocates the arrays in the layouts the kernels prefer; gradients are zero, the rest is
  // undefined. With `shared`, uses its arena and its arguments and auxiliary states of the same
  // name: an evaluation executor runs on the parameters of the training one. Throws kConfig if
  // their shape or type differs from `request`.
  static std::unique_ptr<Executor> SimpleBind(Runtime& runtime, const Symbol& symbol,
                                              BindRequest request, Executor* shared = nullptr);
  // The same symbol for other input shapes, with the same parameters, gradients, auxiliaries and
  // arena. Throws kConfig for a name that is not an input.
  std::unique_ptr<Executor> Reshape(const std::map<std::string, TShape>& input_shapes);
  // Waits for the runs that were pushed, but throws none of their errors. Inside a function of the
  // engine, also of its own run (a Monitor), it returns, and the engine destroys the rest later.
  ~Executor();

  // `inputs`, in the order of input_names(), are used in place; shape and type must be as bound.
  // Throws kConfig naming an input that does not match; the executor is then unchanged. After an
  // error that a wait has thrown, the next Forward or Step starts afresh. Auxiliary states and
  // gradients with kAdd, however, hold what the failed run left and keep the error: runs that need
  // them fail until a wait on them has thrown it or they are overwritten.
  void Forward(std::span<const NDArray> inputs);
  // Once after each Forward of a training executor. `head_grads`: one per output whose operator
  // reads a head gradient, in order of outputs. Throws kUsage without a pending Forward: before the
  // first, after a Step, a second time, or after a run of an executor that shares the arena.
  void Backward(std::span<const NDArray> head_grads = {});
  // Forward and Backward as one frozen sequence. For nets whose heads are losses.
  void Step(std::span<const NDArray> inputs);

  // Step on a part of a batch (BindRequest::divided_batch), so that batch normalization gets the
  // statistics of the whole: BeginStep, then ContinueStep once for each of step_sums(). The call
  // before the i-th pushes what writes the i-th of these arrays, the i-th what reads it; in between
  // the caller pushes what replaces its contents by the sum over all parts. Step does all of it for
  // the only part. Between BeginStep and the last ContinueStep the executor, and what shares its
  // arena, must not be used otherwise.
  void BeginStep(std::span<const NDArray> inputs);
  void ContinueStep();
  // float64, each named after its layer; in the order of the step.
  const std::vector<NDArray>& step_sums() const;

  const std::vector<std::string>& input_names() const;  // order of ListArguments
  // Plain, in their own memory; overwritten by the next run.
  const std::vector<NDArray>& outputs() const;
  const NDArray& arg(std::string_view name) const;  // parameters; throws for inputs
  const NDArray& grad(std::string_view name) const;
  const NDArray& aux(std::string_view name) const;
  const std::map<std::string, NDArray>& args() const;
  const std::map<std::string, NDArray>& grads() const;
  const std::map<std::string, NDArray>& auxs() const;

  // float32 [1] on the device: factor on all gradients, from the next step on; initially 1. Empty
  // unless gradients are computed in float16 (BindRequest::amp), whose range they may exceed.
  const NDArray& loss_scale() const;

  // Training forward passes since the random numbers were seeded: the step of the draws. Set on
  // resume.
  uint64_t random_step() const;
  void set_random_step(uint64_t step);

  // Calls `callback` with every output that a node computes, plain, on the computing thread, at
  // every `every`-th forward pass from now on, and at the matching Backward. One call at a time;
  // with several CPU workers in any order that the net allows. An empty callback ends it.
  using Monitor = std::function<void(const std::string& output_name, const TBlob& value)>;
  void SetMonitor(Monitor callback, int every = 1);

  const executor::ExecGraph& graph() const;
  const executor::MemoryPlan& memory_plan() const;
  int64_t arena_bytes() const;  // of this executor's plan, on all devices

 private:
  Executor();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain
