// SPDX-License-Identifier: Apache-2.0
#pragma once
// The engine with MXNet's signatures (docs/mxnet_forms.md): the context after the function, lists
// as vectors, a callback that is a copyable function, operators that get their context when they
// are pushed. engine.h is the contract; everything is passed on to an engine of it, errors
// included.
//
//   std::unique_ptr<engine::Engine> own = engine::Create();  // or Runtime::engine()
//   mxnet::Engine engine(*own);
//   VarHandle v = engine.NewVariable();
//   engine.PushSync([&](RunContext) { x += 1; }, Context::cpu(), {}, {v});
//   engine.WaitForVar(v);
#include <functional>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/mxnet_stream.h"
#include "mxtrain/engine/engine.h"

namespace mxtrain::mxnet {

using mxtrain::engine::FnProperty;
using mxtrain::engine::VarHandle;

// Functions that take a mxtrain::RunContext fit too.
using Fn = std::function<void(RunContext)>;
// Called once. When the last copy is destroyed without a call, the function ends with an error.
using Callback = std::function<void()>;
using AsyncFn = std::function<void(RunContext, Callback)>;

struct Opr;
using OprHandle = Opr*;

// Thread-safe. The engine must outlive it; variables are the engine's own, operators belong to this
// object.
class MXTRAIN_API Engine {
 public:
  using Fn = mxnet::Fn;
  using Callback = mxnet::Callback;
  using AsyncFn = mxnet::AsyncFn;

  explicit Engine(mxtrain::engine::Engine& engine);
  ~Engine();  // deletes its operators
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  VarHandle NewVariable() { return engine_.NewVar(); }
  // Runs `delete_fn`, which may be empty, after everything pushed on the variable before.
  void DeleteVariable(Fn delete_fn, Context exec_ctx, VarHandle var);
  // Their names in MXNet's architecture guide.
  VarHandle NewVar() { return NewVariable(); }
  void PushDelete(Fn delete_fn, Context exec_ctx, VarHandle var) {
    DeleteVariable(std::move(delete_fn), exec_ctx, var);
  }

  // `name` as in engine::PushOptions. kBug if a variable is in the lists twice, or in both.
  void PushSync(Fn exec_fun, Context exec_ctx, const std::vector<VarHandle>& const_vars,
                const std::vector<VarHandle>& mutate_vars,
                FnProperty property = FnProperty::kNormal, int priority = 0, const char* name = "");
  void PushAsync(AsyncFn exec_fun, Context exec_ctx, const std::vector<VarHandle>& const_vars,
                 const std::vector<VarHandle>& mutate_vars,
                 FnProperty property = FnProperty::kNormal, int priority = 0,
                 const char* name = "");

  OprHandle NewOperator(AsyncFn fn, const std::vector<VarHandle>& const_vars,
                        const std::vector<VarHandle>& mutate_vars,
                        FnProperty property = FnProperty::kNormal, const char* name = "");
  // kBug for an operator that is not this object's, or was deleted.
  void Push(OprHandle op, Context exec_ctx, int priority = 0);
  // Allowed while it runs: deferred until all its pushes have finished.
  void DeleteOperator(OprHandle op);

  void WaitForVar(VarHandle var) { engine_.WaitForVar(var); }
  void WaitForAll() { engine_.WaitForAll(); }

 private:
  std::shared_ptr<Opr> Find(OprHandle op) MXTRAIN_REQUIRES(mutex_);
  // The engine's operator for a context, created at its first use.
  mxtrain::engine::OprHandle On(Opr& opr, Context ctx) MXTRAIN_REQUIRES(mutex_);

  mxtrain::engine::Engine& engine_;
  Mutex mutex_;
  std::unordered_map<OprHandle, std::shared_ptr<Opr>> operators_ MXTRAIN_GUARDED_BY(mutex_);
};

// MXNet's namespace of the engine: `engine::DAGEngine::Fn`, beside what is in mxtrain::engine.
namespace engine {

using namespace mxtrain::engine;
using DAGEngine = mxnet::Engine;

}  // namespace engine

}  // namespace mxtrain::mxnet
