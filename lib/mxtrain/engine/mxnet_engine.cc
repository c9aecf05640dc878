// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/mxnet_engine.h"

#include <map>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain::mxnet {

// Owned by the list of operators, and by each push of it under way.
struct Opr {
  ~Opr() {
    for (const auto& [ctx, own] : on) engine.DeleteOperator(own);
  }

  engine::Engine& engine;
  AsyncFn fn;
  std::vector<VarHandle> const_vars, mutate_vars;
  FnProperty property;
  const char* name;
  std::map<Context, engine::OprHandle> on;
};

namespace {

// An empty function stays empty, so that the engine refuses it.
engine::Fn Adapt(Fn fn) {
  if (!fn) return {};
  return engine::Fn(std::move(fn));
}

engine::AsyncFn Adapt(AsyncFn fn) {
  if (!fn) return {};
  return [fn = std::move(fn)](RunContext ctx, engine::Callback callback) {
    auto shared = std::make_shared<engine::Callback>(std::move(callback));
    fn(ctx, [shared = std::move(shared)] { (*shared)(); });
  };
}

}  // namespace

Engine::Engine(engine::Engine& engine) : engine_(engine) {}

Engine::~Engine() = default;

void Engine::DeleteVariable(Fn delete_fn, Context exec_ctx, VarHandle var) {
  engine_.DeleteVariable(var, Adapt(std::move(delete_fn)), exec_ctx);
}

void Engine::PushSync(Fn exec_fun, Context exec_ctx, const std::vector<VarHandle>& const_vars,
                      const std::vector<VarHandle>& mutate_vars, FnProperty property, int priority,
                      const char* name) {
  engine_.PushSync(Adapt(std::move(exec_fun)), const_vars, mutate_vars,
                   {exec_ctx, property, priority, name, {}});
}

void Engine::PushAsync(AsyncFn exec_fun, Context exec_ctx, const std::vector<VarHandle>& const_vars,
                       const std::vector<VarHandle>& mutate_vars, FnProperty property, int priority,
                       const char* name) {
  engine_.PushAsync(Adapt(std::move(exec_fun)), const_vars, mutate_vars,
                    {exec_ctx, property, priority, name, {}});
}

OprHandle Engine::NewOperator(AsyncFn fn, const std::vector<VarHandle>& const_vars,
                              const std::vector<VarHandle>& mutate_vars, FnProperty property,
                              const char* name) {
  const std::shared_ptr<Opr> opr(
      new Opr{engine_, std::move(fn), const_vars, mutate_vars, property, name, {}});
  const MutexLock lock(mutex_);
  On(*opr, Context::cpu());  // refuses wrong lists now
  operators_.emplace(opr.get(), opr);
  return opr.get();
}

void Engine::Push(OprHandle op, Context exec_ctx, int priority) {
  MutexLock lock(mutex_);
  const std::shared_ptr<Opr> opr = Find(op);  // another thread may delete it meanwhile
  const engine::OprHandle own = On(*opr, exec_ctx);
  lock.Unlock();  // the naive engine runs it now, and it may push others
  engine_.Push(own, priority);
}

void Engine::DeleteOperator(OprHandle op) {
  MutexLock lock(mutex_);
  const std::shared_ptr<Opr> opr = Find(op);  // destroyed without the lock
  operators_.erase(op);
  lock.Unlock();
}

std::shared_ptr<Opr> Engine::Find(OprHandle op) {
  const auto found = operators_.find(op);
  if (found == operators_.end()) {
    Throw(
        ErrorKind::kBug,
        "an operator was pushed or deleted that does not exist: it was deleted before, or belongs "
        "to another engine");
  }
  return found->second;
}

engine::OprHandle Engine::On(Opr& opr, Context ctx) {
  const auto found = opr.on.find(ctx);
  if (found != opr.on.end()) return found->second;
  const engine::OprHandle own =
      engine_.NewOperator(Adapt(opr.fn), opr.const_vars, opr.mutate_vars,
                          {ctx, opr.property, /*priority=*/0, opr.name, {}});
  opr.on.emplace(ctx, own);
  return own;
}

}  // namespace mxtrain::mxnet
