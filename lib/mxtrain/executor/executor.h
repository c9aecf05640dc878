#pragma once
// Runs a symbol: forward, backward, or both as one step. Made by binding the symbol to arrays; passes and memory planning happen then, once.
//
// Calls push work to the engine and return; results are read after a wait on the arrays. One thread at a time may use an executor; several
// steps may be in flight. The executor must not outlive its Runtime.
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/executor/memory_plan.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

class MXTRAIN_API Executor {
 public:
  using BindRequest = executor::BindRequest;

  // Binds to given arrays. `args` and `aux` must hold every argument that is not in request.inputs, and every auxiliary state; `grads`
  // every argument with a grad_req. Their layouts are kept. With `shared`, the two executors use one arena: they never run at once. Throws
  // kConfig naming what is missing, and the array whose shape, type or device is not what `request` says.
  static std::unique_ptr<Executor> Bind(Runtime& runtime, const Symbol& symbol, BindRequest request, const std::map<std::string, NDArray>& args,
                                        const std::map<std::string, NDArray>& grads, const std::map<std::string, NDArray>& aux,
                                        Executor* shared = nullptr);
  // Makes the arrays in the layouts that the kernels want; gradients are zero, the rest is undefined. With `shared`, arguments and auxiliary states that it has
  // under the same name are used, and its arena: an evaluation executor runs on the parameters of the training one. Throws kConfig where their
  // shape or type is not what `request` says.
  static std::unique_ptr<Executor> SimpleBind(Runtime& runtime, const Symbol& symbol, BindRequest request, Executor* shared = nullptr);
  // The same symbol for other input shapes, with the same parameters, gradients, auxiliaries and arena. Throws kConfig for what is no input.
  std::unique_ptr<Executor> Reshape(const std::map<std::string, TShape>& input_shapes);
  ~Executor();

  // `inputs` stand in the order of input_names() and are used where they lie: shape and type must be those that were bound. Throws kConfig
  // naming the input that does not fit; the executor is then as it was before the call. After an error that a wait has thrown, the next
  // Forward or Step starts afresh; but gradients that are added to and auxiliary states hold what the failed run left, so they keep the
  // error, and runs that need them fail with it, until a wait on them has thrown it or they are written anew.
  void Forward(std::span<const NDArray> inputs);
  // Once after each Forward of a training executor. `head_grads`: one for each output whose operator reads a head gradient, in order of outputs.
  // Throws kUsage when no Forward stands open: before any, after a Step, a second time, after a run of an executor that shares the arena.
  void Backward(std::span<const NDArray> head_grads = {});
  // Forward and Backward as one frozen sequence. For nets whose heads are losses.
  void Step(std::span<const NDArray> inputs);

  const std::vector<std::string>& input_names() const;     // order of ListArguments
  const std::vector<NDArray>& outputs() const;             // plain, memory of their own; overwritten by the next run
  const NDArray& arg(std::string_view name) const;         // parameters; throws for inputs
  const NDArray& grad(std::string_view name) const;
  const NDArray& aux(std::string_view name) const;
  const std::map<std::string, NDArray>& args() const;
  const std::map<std::string, NDArray>& grads() const;
  const std::map<std::string, NDArray>& auxs() const;

  // float32 [1] on the device: what all gradients are multiplied by, from the next step on; 1 at first. Empty but where gradients are formed in
  // float16 (BindRequest::amp), whose range ends where theirs may lie.
  const NDArray& loss_scale() const;

  // Training forward passes so far: the step of the random draws. Set when a run is resumed.
  uint64_t random_step() const;
  void set_random_step(uint64_t step);

  // Calls `callback` with every output of every node that runs, plain, on the thread that computes, in steps where `every` divides the count
  // of forward passes since now; a Backward is seen when its Forward was. An empty callback ends it.
  using Monitor = std::function<void(const std::string& output_name, const TBlob& value)>;
  void SetMonitor(Monitor callback, int every = 1);

  const executor::ExecGraph& graph() const;
  const executor::MemoryPlan& memory_plan() const;
  int64_t arena_bytes() const;                              // of this executor's plan

 private:
  Executor();
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain
