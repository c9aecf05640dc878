// SPDX-License-Identifier: Apache-2.0
// The contract of engine.h, case by case, on both engines unless it concerns concurrency.
#include "mxtrain/engine/engine.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <thread>
#include <tuple>
#include <vector>

#include "mxtrain/base/error.h"
#include "tests/support/engines.h"
#include "tests/support/error_message.h"

namespace mxtrain::engine {
namespace {

using test::Fail;
using test::kEngineTypes;
using test::MakeEngine;
using test::MessageOf;
using test::Vars;

// Blocks functions until it is opened.
class Gate {
 public:
  void Open() {
    std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void Pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// What happened, in order.
class Log {
 public:
  void Add(const std::string& entry) {
    std::lock_guard lock(mutex_);
    text_ += entry;
  }
  std::string text() const {
    std::lock_guard lock(mutex_);
    return text_;
  }

 private:
  mutable std::mutex mutex_;
  std::string text_;
};

}  // namespace

TEST_CASE("an unknown engine type is rejected") {
  CHECK(MessageOf([] { MakeEngine("fast"); }) ==
        "engine type 'fast' is unknown; use 'threaded' or 'naive'");
}

TEST_CASE("DeduplicateVars leaves every variable once, as a write if it is one") {
  auto engine = MakeEngine("naive");
  VarHandle a = engine->NewVar(), b = engine->NewVar(), c = engine->NewVar();
  Vars reads{a, b, a, c}, writes{c, c};
  DeduplicateVars(&reads, &writes);
  CHECK(writes == Vars{c});
  CHECK(reads.size() == 2);
  CHECK(std::count(reads.begin(), reads.end(), a) == 1);
  CHECK(std::count(reads.begin(), reads.end(), b) == 1);
}

TEST_CASE("writes of one variable run in push order and versions count them") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 3);
    VarHandle var = engine->NewVar();
    std::vector<int> order;
    for (int i = 0; i < 100; ++i)
      engine->PushSync([&, i](RunContext) { order.push_back(i); }, {}, Vars{var}, {});
    CHECK(engine->Version(var) == 100);
    engine->WaitForVar(var);
    REQUIRE(order.size() == 100);
    CHECK(std::is_sorted(order.begin(), order.end()));
  }
}

TEST_CASE("two readers run together") {
  auto engine = MakeEngine("threaded", 2);
  VarHandle var = engine->NewVar();
  std::promise<void> first, second;
  auto first_ran = first.get_future(), second_ran = second.get_future();
  engine->PushSync([&](RunContext) { first.set_value(), second_ran.wait(); }, Vars{var}, {}, {});
  engine->PushSync([&](RunContext) { second.set_value(), first_ran.wait(); }, Vars{var}, {}, {});
  engine->WaitForAll();  // would hang if one waited for the other
}

TEST_CASE("a variable that appears twice in a push is rejected") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle var = engine->NewVar();
    const std::string expected =
        "'twice' names one variable twice in a push; make the lists distinct with DeduplicateVars";
    for (const auto& lists :
         {std::pair{Vars{var, var}, Vars{}}, {Vars{}, Vars{var, var}}, {Vars{var}, Vars{var}}}) {
      CHECK(MessageOf([&] {
              engine->PushSync([](RunContext) {}, lists.first, lists.second, {.name = "twice"});
            }) == expected);
    }
    CHECK(engine->Version(var) == 0);
    engine->WaitForAll();
  }
}

TEST_CASE("a device without workers is rejected at the push") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    CHECK(MessageOf([&] {
            engine->PushSync([](RunContext) {}, {}, {}, {.ctx = Context::gpu(1), .name = "conv"});
          }) ==
          "'conv' was pushed to gpu(1), for which this engine has no workers; push it to an "
          "existing device, such as cpu(0)");
  }
}

TEST_CASE("an empty function is rejected") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    const std::string expected = "'nothing' was pushed without a function to call";
    CHECK(MessageOf([&] { engine->PushSync(Fn(), {}, {}, {.name = "nothing"}); }) == expected);
    CHECK(MessageOf([&] { engine->PushAsync(AsyncFn(), {}, {}, {.name = "nothing"}); }) ==
          expected);
    CHECK(MessageOf([&] { engine->NewOperator(AsyncFn(), {}, {}, {.name = "nothing"}); }) ==
          expected);
    engine->WaitForAll();
  }
}

// Thread ids are reused, but a new thread must be set up again.
TEST_CASE("every thread that works for a naive engine is set up first, once per engine") {
  for (int engines : {1, 2}) {
    std::atomic<int> starts{0};
    EngineOptions options;
    options.type = "naive";
    options.on_worker_start = [&](Context, FnProperty) { ++starts; };
    std::vector<std::unique_ptr<Engine>> made;
    for (int i = 0; i < engines; ++i) made.push_back(Create(options));
    for (int thread = 0; thread < 8; ++thread) {
      std::thread([&] {
        for (int push = 0; push < 3; ++push) {
          for (auto& engine : made) engine->PushSync([](RunContext) {}, {}, {}, {});
        }
      }).join();
    }
    CHECK(starts == 8 * engines);
  }
}

TEST_CASE("waiting inside an engine function is an error, not a deadlock") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle var = engine->NewVar();
    engine->PushSync([&](RunContext) { engine->WaitForVar(var); }, {}, Vars{var},
                     {.name = "waits"});
    CHECK(MessageOf([&] { engine->WaitForAll(); }) ==
          "waits: WaitForVar was called inside an engine function: it would wait for itself; push "
          "a function that names the variable "
          "instead");
    engine->PushSync([&](RunContext) { engine->WaitForAll(); }, {}, {}, {.name = "waits"});
    CHECK(MessageOf([&] {
            engine->WaitForAll();
          }).starts_with("waits: WaitForAll was called inside"));
  }
}

TEST_CASE("a function may push; what it pushes runs after it if they share a variable") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 2);
    VarHandle var = engine->NewVar();
    Log log;
    engine->PushSync(
        [&](RunContext) {
          engine->PushSync([&](RunContext) { log.Add("b"); }, {}, Vars{var}, {});
          log.Add("a");
        },
        {}, Vars{var}, {});
    engine->WaitForAll();
    CHECK(log.text() == "ab");
  }
}

TEST_CASE("an asynchronous function ends when its callback is called, from any thread") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle var = engine->NewVar();
    std::thread outside;
    std::atomic<bool> done = false;
    engine->PushAsync(
        [&](RunContext, Callback callback) {
          outside = std::thread([&done, callback = std::move(callback)]() mutable {
            std::this_thread::sleep_for(std::chrono::milliseconds(5));
            done = true;
            callback();
          });
        },
        {}, Vars{var}, {.name = "async"});
    bool seen = false;
    engine->PushSync([&](RunContext) { seen = done; }, Vars{var}, {}, {});
    engine->WaitForAll();
    outside.join();
    CHECK(seen);
  }
}

TEST_CASE("errors of asynchronous functions: thrown, given to the callback, callback dropped") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle var = engine->NewVar();
    engine->PushAsync([](RunContext, Callback) { Fail("thrown"); }, {}, Vars{var},
                      {.name = "async"});
    CHECK(MessageOf([&] { engine->WaitForVar(var); }) == "async: thrown");
    engine->PushAsync(
        [](RunContext, Callback callback) {
          callback(std::make_exception_ptr(Error(ErrorKind::kData, "given")));
        },
        {}, Vars{var}, {.name = "async"});
    CHECK(MessageOf([&] { engine->WaitForVar(var); }) == "async: given");
    engine->PushAsync([](RunContext, Callback) {}, {}, Vars{var}, {.name = "async"});
    CHECK(MessageOf([&] {
            engine->WaitForVar(var);
          }).starts_with("async: the callback was dropped without being called"));
    engine->PushAsync(
        [](RunContext, Callback callback) {
          callback();
          callback();
        },
        {}, Vars{var}, {.name = "async"});
    CHECK(MessageOf([&] {
            engine->WaitForVar(var);
          }).starts_with("async: the callback of an asynchronous function was called twice"));
  }
}

TEST_CASE("among ready functions the higher priority runs first, equal ones in push order") {
  auto engine = MakeEngine("threaded");
  Gate gate;
  Log log;
  engine->PushSync([&](RunContext) { gate.Pass(); }, {}, {}, {});
  const std::pair<int, const char*> pushes[] = {{0, "c"}, {5, "a"}, {-1, "f"},
                                                {0, "d"}, {5, "b"}, {0, "e"}};
  for (const auto& [priority, name] : pushes)
    engine->PushSync([&log, name = name](RunContext) { log.Add(name); }, {}, {},
                     {.priority = priority});
  gate.Open();
  engine->WaitForAll();
  CHECK(log.text() == "abcdef");
}

TEST_CASE("a function that became ready late runs before later pushes of its priority") {
  auto engine = MakeEngine("threaded", 2);
  VarHandle var = engine->NewVar();
  Gate hold_var, hold_lane;
  Log log;
  engine->PushSync([&](RunContext) { hold_var.Pass(); }, {}, Vars{var},
                   {.property = FnProperty::kIO});
  engine->PushSync([&](RunContext) { hold_lane.Pass(); }, {}, {}, {});
  engine->PushSync([&](RunContext) { hold_lane.Pass(); }, {}, {}, {});
  VarHandle ready = engine->NewVar();
  engine->PushSync([&](RunContext) { log.Add("a"); }, Vars{var}, Vars{ready}, {});
  engine->PushSync([&](RunContext) { log.Add("b"); }, {}, Vars{ready}, {});
  hold_var.Open();
  hold_lane.Open();
  engine->WaitForAll();
  CHECK(log.text() == "ab");
}

// All become ready at once, in the order of the variables, while the lane is held.
TEST_CASE(
    "functions that became ready late run by priority and in push order, before later pushes") {
  auto engine = MakeEngine("threaded");
  Vars vars;
  for (int i = 0; i < 7; ++i) vars.push_back(engine->NewVar());
  Gate hold_vars, hold_lane;
  std::promise<void> granted;
  Log log;
  engine->PushSync([&](RunContext) { hold_vars.Pass(); }, {}, vars, {.property = FnProperty::kIO});
  engine->PushSync([&](RunContext) { hold_lane.Pass(); }, {}, {}, {});
  const std::tuple<const char*, int, int> late[] = {
      {"b", 4, 0}, {"c", 6, 0}, {"d", 1, 0}, {"a", 5, 1}, {"e", 3, 0}, {"f", 0, 0}, {"i", 2, -1}};
  for (const auto& [name, var, priority] : late)
    engine->PushSync([&log, name = name](RunContext) { log.Add(name); }, Vars{vars[var]}, {},
                     {.priority = priority});
  for (const char* name : {"g", "h"})
    engine->PushSync([&log, name](RunContext) { log.Add(name); }, {}, {}, {});
  // On the one IO worker, after it has passed on what it held.
  engine->PushSync([&](RunContext) { granted.set_value(); }, {}, {}, {.property = FnProperty::kIO});
  hold_vars.Open();
  granted.get_future().wait();
  hold_lane.Open();
  engine->WaitForAll();
  CHECK(log.text() == "abcdefghi");
}

TEST_CASE("each purpose has its own workers") {
  auto engine = MakeEngine("threaded");
  Gate gate;
  const FnProperty others[] = {FnProperty::kCopyFromDevice, FnProperty::kCopyToDevice,
                               FnProperty::kIO, FnProperty::kComm};
  engine->PushSync([&](RunContext) { gate.Pass(); }, {}, {}, {});
  for (FnProperty property : others) {
    VarHandle var = engine->NewVar();
    engine->PushSync([](RunContext) {}, {}, Vars{var}, {.property = property});
    engine->WaitForVar(var);  // would hang behind the gate
  }
  gate.Open();
  engine->WaitForAll();
}

TEST_CASE(
    "deletion of a variable in use waits for what was pushed before and runs even after errors") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 2);
    VarHandle var = engine->NewVar();
    Log log;
    for (int i = 0; i < 3; ++i)
      engine->PushSync([&](RunContext) { log.Add("w"); }, {}, Vars{var}, {});
    engine->PushSync([](RunContext) { Fail("late"); }, {}, Vars{var}, {.name = "fails"});
    engine->DeleteVariable(
        var, [&](RunContext) { log.Add("f"); }, Context::cpu());
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "fails: late");
    CHECK(log.text() == "wwwf");
    VarHandle plain = engine->NewVar();
    engine->PushSync([&](RunContext) { log.Add("p"); }, {}, Vars{plain}, {});
    engine->DeleteVariable(plain, {}, Context::cpu());
    engine->WaitForAll();
    CHECK(log.text() == "wwwfp");
    CHECK(engine->Version(engine->NewVar()) == 0);
  }
}

TEST_CASE("an operator is pushed many times; its deletion waits for the pushes") {
  for (const char* type : kEngineTypes) {
    auto owned = std::make_shared<int>(0);
    auto engine = MakeEngine(type);
    VarHandle in = engine->NewVar(), out = engine->NewVar();
    OprHandle opr = engine->NewOperator(
        [owned](RunContext, Callback callback) {
          ++*owned;
          callback();
        },
        Vars{in}, Vars{out}, {.name = "opr"});
    for (int i = 0; i < 50; ++i) engine->Push(opr, i % 3);
    engine->DeleteOperator(opr);
    CHECK(engine->Version(out) == 50);
    engine->WaitForAll();
    CHECK(*owned == 50);
    CHECK(owned.use_count() == 1);
  }
}

TEST_CASE(
    "operators and sequences that nobody deleted are destroyed with the engine, before its "
    "workers") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto owned = std::make_shared<int>(0);
    bool freed = false;
    {
      auto engine = MakeEngine(type);
      VarHandle var = engine->NewVar(), dies_late = engine->NewVar();
      // What a closure owns may push on destruction.
      const std::shared_ptr<void> guard(nullptr, [&freed, dies_late, engine = engine.get()](void*) {
        engine->DeleteVariable(
            dies_late, [&freed](RunContext) { freed = true; }, Context::cpu());
      });
      OprHandle opr = engine->NewOperator(
          [owned, guard](RunContext, Callback callback) { callback(); }, {}, Vars{var}, {});
      engine->Push(opr, 0);
      SequenceOp op;
      op.fn = [owned](RunContext) {};
      op.writes = {0};
      std::vector<SequenceOp> ops;
      ops.push_back(std::move(op));
      SequenceHandle sequence = engine->NewSequence(std::move(ops), 1);
      engine->Push(sequence, Vars{var});
    }
    CHECK(owned.use_count() == 1);
    CHECK(freed);
  }
}

TEST_CASE("what a function owned is gone when a wait returns") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle var = engine->NewVar();
    auto owned = std::make_shared<int>(1);
    engine->PushSync([owned](RunContext) {}, {}, Vars{var}, {});
    engine->WaitForVar(var);
    CHECK(owned.use_count() == 1);
  }
}

TEST_CASE("a worker that cannot start fails its functions with the reason") {
  EngineOptions options;
  options.on_worker_start = [](Context, FnProperty property) {
    if (property == FnProperty::kIO) Fail("no threads left");
  };
  auto engine = Create(std::move(options));
  VarHandle var = engine->NewVar();
  engine->PushSync([](RunContext) {}, {}, Vars{var}, {.property = FnProperty::kIO, .name = "read"});
  CHECK(MessageOf([&] { engine->WaitForVar(var); }) == "read: no threads left");
  engine->PushAsync([](RunContext, Callback callback) { callback(); }, {}, Vars{var},
                    {.property = FnProperty::kIO, .name = "read"});
  CHECK(MessageOf([&] { engine->WaitForVar(var); }) == "read: no threads left");
  engine->PushSync([](RunContext) {}, {}, Vars{var}, {});
  engine->WaitForAll();
}

TEST_CASE("a deletion needs no worker: it frees memory even if none can start") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    for (const bool by_stream : {false, true}) {
      CAPTURE(by_stream);
      EngineOptions options;
      options.type = type;
      if (!by_stream)
        options.on_worker_start = [](Context, FnProperty) { Fail("no threads left"); };
      if (by_stream)
        options.new_stream = [](Context, FnProperty) -> std::unique_ptr<Stream> {
          Fail("no streams left");
        };
      bool freed = false;
      {
        auto engine = Create(std::move(options));
        VarHandle var = engine->NewVar();
        engine->PushSync([](RunContext) {}, {}, Vars{var}, {.name = "works"});
        engine->DeleteVariable(
            var, [&](RunContext) { freed = true; }, Context::cpu());
        CHECK(MessageOf([&] { engine->WaitForAll(); }).starts_with("works: no "));
        engine->WaitForAll();  // the deletion itself has not failed
      }
      CHECK(freed);
    }
  }
}

TEST_CASE("workers hand their stream to the functions") {
  struct Done : Event {
    void Wait() override {}
  };
  struct Numbered : Stream {
    std::unique_ptr<Event> NewEvent() override { return std::make_unique<Done>(); }
    void Record(Event&) override {}
    void WaitFor(const Event&) override {}
  };
  for (const char* type : kEngineTypes) {
    EngineOptions options;
    options.type = type;
    options.new_stream = [](Context, FnProperty) { return std::make_unique<Numbered>(); };
    auto engine = Create(std::move(options));
    Context ctx;
    bool has_stream = false;
    engine->PushSync(
        [&](RunContext run) { ctx = run.ctx, has_stream = dynamic_cast<Numbered*>(run.stream); },
        {}, {}, {.ctx = Context::cpu(1)});
    engine->WaitForAll();
    CHECK(ctx == Context::cpu(1));
    CHECK(has_stream);
  }
}

}  // namespace mxtrain::engine
