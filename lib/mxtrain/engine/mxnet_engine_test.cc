// SPDX-License-Identifier: Apache-2.0
// The fragments of MXNet's architecture guide, on both engines.
#include "mxtrain/engine/mxnet_engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>

#include "mxtrain/base/error.h"
#include "tests/support/engines.h"
#include "tests/support/error_message.h"

namespace mxtrain::mxnet {
namespace {

using test::kEngineTypes;
using test::MakeEngine;
using test::MessageOf;

TEST_CASE("functions that mutate a common variable run in push order") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const VarHandle v1 = engine.NewVariable(), v2 = engine.NewVar();
    std::vector<int> order;
    int read = -1;
    const Context exec_ctx = Context::cpu();
    for (int i = 0; i < 50; ++i) {
      const Fn exec_fun = [&order, i](RunContext) { order.push_back(i); };
      engine.PushSync(exec_fun, exec_ctx, {v1}, {v2});
    }
    engine.PushSync([&](RunContext) { read = static_cast<int>(order.size()); }, exec_ctx, {v2},
                    {v1});
    engine.WaitForVar(v1);
    CHECK(read == 50);
    CHECK(std::is_sorted(order.begin(), order.end()));
    CHECK(own->Version(v2) == 50);
  }
}

TEST_CASE("an asynchronous function ends when any copy of its callback is called") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const VarHandle disk = engine.NewVariable();
    int bytes = 0, seen = 0;
    std::thread reader;
    engine.PushAsync(
        [&](RunContext, Callback on_complete) {
          reader = std::thread([&bytes, on_complete] {
            bytes = 7;
            on_complete();
          });
        },
        Context::cpu(), {}, {disk}, FnProperty::kIO, /*priority=*/1, "read");
    engine.PushSync([&](RunContext) { seen = bytes; }, Context::cpu(), {disk}, {});
    engine.WaitForAll();
    reader.join();
    CHECK(seen == 7);
  }
}

TEST_CASE("a callback that is dropped, and one that is called twice, are errors") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const VarHandle v = engine.NewVariable();
    engine.PushAsync([](RunContext, Callback) {}, Context::cpu(), {}, {v}, FnProperty::kNormal, 0,
                     "forgetful");
    CHECK(MessageOf([&] {
            engine.WaitForVar(v);
          }).starts_with("forgetful: the callback was dropped without being called"));
    engine.PushAsync([](RunContext, Callback done) { done(), done(); }, Context::cpu(), {}, {v},
                     FnProperty::kNormal, 0, "eager");
    CHECK(MessageOf([&] {
            engine.WaitForVar(v);
          }).starts_with("eager: the callback of an asynchronous function was called twice"));
  }
}

TEST_CASE("an operator is created once, and pushed to any context") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const VarHandle in = engine.NewVariable(), out = engine.NewVariable();
    std::vector<Context> where;
    const OprHandle op = engine.NewOperator(
        [&where](RunContext ctx, Callback done) {
          where.push_back(ctx.ctx);
          done();
        },
        {in}, {out}, FnProperty::kNormal, "count");
    for (const int id : {0, 1, 1, 0}) engine.Push(op, Context::cpu(id));
    engine.DeleteOperator(op);  // the pushes are still pending
    engine.WaitForVar(out);
    CHECK(where ==
          std::vector<Context>{Context::cpu(0), Context::cpu(1), Context::cpu(1), Context::cpu(0)});
    CHECK(MessageOf([&] {
            engine.Push(op, Context::cpu());
          }).starts_with("an operator was pushed or deleted that does not exist"));
    CHECK_THROWS_AS(engine.DeleteOperator(op), Error);
  }
}

TEST_CASE("an operator may be deleted while another thread pushes it") {
  const auto own = MakeEngine("threaded", 3);
  Engine engine(*own);
  for (int round = 0; round < 50; ++round) {
    const OprHandle op =
        engine.NewOperator([](RunContext, Callback done) { done(); }, {}, {engine.NewVariable()});
    std::thread pusher([&engine, op] {
      try {
        for (;;) engine.Push(op, Context::cpu());
      } catch (const Error&) {  // it does not exist any more
      }
    });
    engine.DeleteOperator(op);
    pusher.join();
  }
  engine.WaitForAll();
}

TEST_CASE("an operator for a device without workers is refused at the push") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const OprHandle op = engine.NewOperator([](RunContext, Callback done) { done(); }, {}, {},
                                            FnProperty::kNormal, "conv");
    CHECK(MessageOf([&] {
            engine.Push(op, Context::gpu());
          }).starts_with("'conv' was pushed to gpu(0), for which this engine has no workers"));
    engine.Push(op, Context::cpu());
    engine.WaitForAll();
  }
}

TEST_CASE("operators may be pushed from an engine's function, and are deleted with their object") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    int runs = 0;
    {
      Engine engine(*own);
      const VarHandle v = engine.NewVariable();
      const OprHandle op = engine.NewOperator(
          [&runs](RunContext, Callback done) {
            ++runs;
            done();
          },
          {}, {v});
      engine.PushSync([&engine, op](RunContext) { engine.Push(op, Context::cpu()); },
                      Context::cpu(), {}, {});
      engine.WaitForAll();
      engine.Push(op, Context::cpu());
    }
    own->WaitForAll();
    CHECK(runs == 2);
  }
}

TEST_CASE("a deletion runs its function after everything pushed on the variable") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    auto bytes = std::make_unique<int>(0);
    int freed_at = -1;
    const VarHandle v = engine.NewVariable();
    for (int i = 0; i < 10; ++i)
      engine.PushSync([&](RunContext) { ++*bytes; }, Context::cpu(), {}, {v});
    engine.DeleteVariable(
        [&](RunContext) {
          freed_at = *bytes;
          bytes.reset();
        },
        Context::cpu(), v);
    engine.PushDelete({}, Context::cpu(), engine.NewVar());
    engine.WaitForAll();
    CHECK(freed_at == 10);
    CHECK(bytes == nullptr);
  }
}

TEST_CASE("lists that overlap and empty functions are refused as the engine does") {
  for (const char* type : kEngineTypes) {
    const auto own = MakeEngine(type, 3);
    Engine engine(*own);
    const VarHandle v = engine.NewVariable();
    const std::string expected =
        "'both' names one variable twice in a push; make the lists distinct with DeduplicateVars";
    const FnProperty normal = FnProperty::kNormal;
    const AsyncFn async = [](RunContext, Callback done) { done(); };
    CHECK(MessageOf([&] {
            engine.PushSync([](RunContext) {}, Context::cpu(), {v}, {v}, normal, 0, "both");
          }) == expected);
    CHECK(MessageOf([&] {
            engine.PushAsync(async, Context::cpu(), {}, {v, v}, normal, 0, "both");
          }) == expected);
    CHECK(MessageOf([&] { engine.NewOperator(async, {v}, {v}, normal, "both"); }) == expected);
    CHECK(MessageOf([&] { engine.PushSync({}, Context::cpu(), {}, {}, normal, 0, "nothing"); }) ==
          "'nothing' was pushed without a function to call");
    CHECK(MessageOf([&] { engine.NewOperator({}, {}, {}, normal, "nothing"); }) ==
          "'nothing' was pushed without a function to call");
    CHECK(own->Version(v) == 0);
  }
}

TEST_CASE("the engine's types by MXNet's names, and the stream of a running function") {
  const std::unique_ptr<mxtrain::engine::Engine> own = engine::Create();
  Engine engine(*own);
  const VarHandle v = engine.NewVar();
  bool has_stream = true;
  int x = 0;
  const engine::DAGEngine::Fn fn = [&](RunContext ctx) {
    has_stream = ctx.get_stream<cpu>() != nullptr;
    x = 1;
  };
  const engine::DAGEngine::AsyncFn async = [&](RunContext, Engine::Callback done) {
    x += 2;
    done();
  };
  engine.PushSync(fn, Context::cpu(), {}, {v});
  engine.PushAsync(async, Context::cpu(), {}, {v}, engine::FnProperty::kNormal);
  engine.PushDelete([](mxtrain::RunContext) {}, Context::cpu(), v);
  engine.WaitForAll();
  CHECK_FALSE(has_stream);
  CHECK(x == 3);
}

}  // namespace
}  // namespace mxtrain::mxnet
