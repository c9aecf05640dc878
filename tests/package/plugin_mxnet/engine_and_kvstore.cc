// SPDX-License-Identifier: Apache-2.0
// The fragments of MXNet's architecture guide about the engine and the KVStore. Prints what they
// compute.
#include <cstdio>
#include <thread>
#include <vector>

#include "mxtrain/engine/mxnet_engine.h"
#include "mxtrain/kvstore/mxnet_kvstore.h"
#include "mxtrain/operator/arithmetic.h"

namespace mxtrain::mxnet {

// Two functions that mutate one variable, a third that reads it, and an operator that is pushed
// again and again.
void UseEngine(Engine* engine) {
  const Context exec_ctx = Context::cpu();
  const VarHandle v1 = engine->NewVariable(), v2 = engine->NewVariable();
  int data = 0, seen = 0;
  const engine::DAGEngine::Fn fn1 = [&data](RunContext) { data = 20; },
                              fn2 = [&data](RunContext) { data += 1; };
  engine->PushSync(fn1, exec_ctx, {v1}, {v2});
  engine->PushSync(fn2, exec_ctx, {v1}, {v2});
  engine->PushSync([&](RunContext) { seen = data; }, exec_ctx, {v2}, {});

  // The heavy part is on a thread of its own; the engine waits for the callback.
  std::thread heavy;
  const AsyncFn twice = [&data, &heavy](RunContext, Callback on_complete) {
    if (heavy.joinable()) heavy.join();
    heavy = std::thread([&data, on_complete] {
      data *= 2;
      on_complete();
    });
  };
  const OprHandle op = engine->NewOperator(twice, {v1}, {v2});
  for (int i = 0; i < 3; ++i) engine->Push(op, exec_ctx);
  engine->WaitForVar(v2);
  std::printf("engine: %d, then %d\n", seen, data);

  engine->WaitForAll();
  heavy.join();
  engine->DeleteOperator(op);
  engine->DeleteVariable([](RunContext) {}, exec_ctx, v1);
  engine->DeleteVariable([](RunContext) {}, exec_ctx, v2);
  engine->WaitForAll();
}

// init, push of several workers, updater, pull.
void UseKVStore(Runtime& runtime) {
  const auto kv = mxtrain::KVStore::Create(runtime, "local");
  NDArray value(runtime, {2, 3}), one(runtime, {2, 3}), out(runtime, {2, 3});
  value = 2;
  one = 1;
  kv->Init(3, {&value, 1}, /*share=*/false);
  kv->SetUpdater([](std::span<const mxtrain::KVStore::KeyUpdate> keys) {
    for (const auto& [key, input, stored, priority] : keys) {
      NDArray local = stored;
      local += input * 2;
    }
  });
  const std::vector<NDArray> workers(4, one);
  kv->Push(3, workers, /*priority=*/0);
  kv->Pull(3, {&out, 1}, /*priority=*/0);
  std::printf("kvstore: %g\n", out.ToVector()[5]);

  // Lists of keys.
  KVStore lists(*kv);
  NDArray other(runtime, {2, 3});
  lists.Init({5, 7}, {value, value});
  lists.Push({5, 7, 5}, {one, one, one});
  lists.Pull({5, 7}, {&out, &other});
  std::printf("lists of keys: %g %g\n", out.ToVector()[0], other.ToVector()[0]);
}

}  // namespace mxtrain::mxnet

int main() {
  try {
    mxtrain::Runtime runtime({}, mxtrain::BuiltinOperators());
    mxtrain::mxnet::Engine engine(runtime.engine());
    mxtrain::mxnet::UseEngine(&engine);
    mxtrain::mxnet::UseKVStore(runtime);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "engine_and_kvstore: %s\n", error.what());
    return 1;
  }
}
