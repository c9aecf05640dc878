// SPDX-License-Identifier: Apache-2.0
// The page on errors in lib/docs/engine.md, sentence by sentence, on both engines. What happens to
// sequences and devices is in sequence_test.cc and device_test.cc.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"
#include "tests/support/engines.h"
#include "tests/support/error_message.h"

namespace mxtrain::engine {
namespace {

using test::Fail;
using test::kEngineTypes;
using test::MakeEngine;
using test::MessageOf;
using test::Vars;

void PushFailure(Engine& engine, const char* name, const Vars& writes) {
  engine.PushSync([](RunContext) { Fail("broken"); }, {}, writes, {.name = name});
}

TEST_CASE(
    "an error stays on the written variables, skips what needs them, and is thrown once by each "
    "wait") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 2);
    VarHandle a = engine->NewVar(), b = engine->NewVar(), c = engine->NewVar();
    bool reader_ran = false, other_ran = false;
    engine->PushSync([](RunContext) { Fail("broken"); }, {}, Vars{a}, {.name = "loader"});
    engine->PushSync([&](RunContext) { reader_ran = true; }, Vars{a}, Vars{b}, {.name = "reader"});
    engine->PushSync([&](RunContext) { other_ran = true; }, {}, Vars{c}, {.name = "other"});
    CHECK(MessageOf([&] { engine->WaitToRead(b); }) == "loader: broken");
    CHECK(MessageOf([&] { engine->WaitToRead(b); }) == "");
    CHECK(MessageOf([&] { engine->WaitForVar(a); }) == "loader: broken");
    CHECK(MessageOf([&] { engine->WaitForVar(c); }) == "");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");  // a wait has thrown it
    CHECK_FALSE(reader_ran);
    CHECK(other_ran);
    engine->PushSync([&](RunContext) { reader_ran = true; }, Vars{a}, Vars{b}, {.name = "reader"});
    engine->WaitForAll();
    CHECK(reader_ran);
  }
}

TEST_CASE(
    "WaitForAll throws the first error that no wait has thrown; variables keep their errors") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    VarHandle a = engine->NewVar(), b = engine->NewVar(), c = engine->NewVar();
    int reads = 0;
    const auto read_b = [&] {
      engine->PushSync([&](RunContext) { ++reads; }, Vars{b}, Vars{c}, {.name = "reader"});
    };
    engine->PushSync([](RunContext) { Fail("one"); }, {}, Vars{a}, {.name = "first"});
    engine->PushSync([](RunContext) { Fail("two"); }, {}, Vars{b}, {.name = "second"});
    engine->PushSync([](RunContext) { Fail("three"); }, {}, {}, {.name = "third"});
    CHECK(MessageOf([&] { engine->WaitForVar(a); }) == "first: one");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "second: two (and 1 more error)");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");
    read_b();
    CHECK(MessageOf([&] { engine->WaitForVar(c); }) == "second: two");
    engine->PushSync([](RunContext) {}, {}, Vars{b}, {.name = "writer", .renews = Vars{b}});
    read_b();
    CHECK(MessageOf([&] { engine->WaitForVar(c); }) == "");
    CHECK(reads == 1);
  }
}

TEST_CASE(
    "a function that renews its variables runs after a thrown error and passes on an unthrown "
    "one") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto engine = MakeEngine(type, 2);
    VarHandle arena = engine->NewVar(), output = engine->NewVar(), read = engine->NewVar();
    int runs = 0;
    const auto run = [&] {
      engine->PushSync([&](RunContext) { ++runs; }, Vars{read}, Vars{arena, output},
                       {.name = "run", .renews = Vars{arena, output}});
    };
    engine->PushSync([](RunContext) { Fail("first"); }, {}, Vars{arena, output}, {.name = "bad"});
    run();
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "bad: first");
    CHECK(runs == 0);
    // Thrown now: `arena` still carries it, and it counts as thrown elsewhere.
    int others = 0;
    engine->PushSync([&](RunContext) { ++others; }, Vars{arena}, Vars{output}, {.name = "other"});
    run();
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "");
    CHECK(MessageOf([&] { engine->WaitToRead(arena); }) == "");
    CHECK(runs == 1);
    CHECK(others == 0);
    // A partially written variable keeps its error.
    engine->PushSync([](RunContext) { Fail("part"); }, {}, Vars{arena, output}, {.name = "bad"});
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "bad: part");
    engine->PushSync([&](RunContext) { ++runs; }, {}, Vars{arena, output},
                     {.name = "half", .renews = Vars{output}});
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "bad: part");
    CHECK(MessageOf([&] { engine->WaitToRead(arena); }) == "bad: part");
    CHECK(runs == 1);
    // A variable that is only read is not renewed.
    engine->PushSync([](RunContext) { Fail("second"); }, {}, Vars{output, read}, {.name = "bad"});
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "bad: second");
    run();
    CHECK(MessageOf([&] { engine->WaitToRead(output); }) == "bad: second");
    CHECK(runs == 1);
  }
}

TEST_CASE("an error keeps its kind; exceptions of other types become bugs with their message") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    for (const auto& [throws_error, kind] :
         {std::pair{true, ErrorKind::kData}, {false, ErrorKind::kBug}}) {
      engine->PushSync(
          [throws_error = throws_error](RunContext) {
            throws_error ? Fail("why") : throw std::runtime_error("why");
          },
          {}, {}, {.name = "fn"});
      try {
        engine->WaitForAll();
        FAIL("WaitForAll threw nothing");
      } catch (const Error& error) {
        CHECK(error.kind() == kind);
        CHECK(std::string(error.what()) == "fn: why");
      }
    }
  }
}

TEST_CASE("of several failures a function takes that of the first variable in its lists") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto engine = MakeEngine(type, 2);
    const VarHandle a = engine->NewVar(), b = engine->NewVar(), c = engine->NewVar(),
                    d = engine->NewVar();
    PushFailure(*engine, "late", Vars{c});
    PushFailure(*engine, "first", Vars{b});
    PushFailure(*engine, "second", Vars{a});
    const auto join = [&](const Vars& reads, const Vars& writes) {
      engine->PushSync([](RunContext) {}, reads, writes, {.name = "joins"});
    };
    join(Vars{b, a}, Vars{d});
    CHECK(MessageOf([&] { engine->WaitToRead(d); }) == "first: broken");
    join(Vars{a, b}, Vars{d});
    CHECK(MessageOf([&] { engine->WaitToRead(d); }) == "second: broken");
    // Reads come before writes, and a variable keeps its first failure.
    join(Vars{a}, Vars{c, d});
    CHECK(MessageOf([&] { engine->WaitToRead(d); }) == "second: broken");
    CHECK(MessageOf([&] { engine->WaitToRead(c); }) == "late: broken");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");  // what was inherited is not another
  }
}

TEST_CASE("Drain waits and leaves all failures where they are") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto engine = MakeEngine(type, 2);
    const VarHandle a = engine->NewVar(), b = engine->NewVar();
    std::atomic<bool> over = false;
    engine->PushSync(
        [&](RunContext) {
          std::this_thread::sleep_for(std::chrono::milliseconds(5));
          over = true;
          Fail("broken");
        },
        {}, Vars{a, b}, {.name = "writer"});
    engine->Drain(a);
    CHECK(over);
    engine->Drain(a);
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "writer: broken");
    engine->Drain(b);
    CHECK(MessageOf([&] { engine->WaitForVar(a); }) == "writer: broken");
    CHECK(MessageOf([&] { engine->WaitForVar(a); }) == "");
    CHECK(MessageOf([&] { engine->WaitToRead(b); }) == "writer: broken");
    engine->PushSync([&](RunContext) { engine->Drain(a); }, {}, Vars{b}, {.name = "drains"});
    CHECK(MessageOf([&] {
            engine->WaitForVar(b);
          }).starts_with("drains: Drain was called inside an engine function"));
  }
}

// The function that renews waits behind an asynchronous one, while the failure is thrown elsewhere.
TEST_CASE("whether a failure was thrown before a push does not depend on when the function runs") {
  auto engine = MakeEngine("threaded", 2);
  const VarHandle seen = engine->NewVar(), unseen = engine->NewVar(), held = engine->NewVar();
  std::promise<void> called;
  std::thread outside;
  engine->PushAsync(
      [&](RunContext, Callback callback) {
        outside = std::thread([&, callback = std::move(callback)]() mutable {
          called.get_future().wait();
          callback();
        });
      },
      {}, Vars{held}, {.name = "async"});
  PushFailure(*engine, "bad", Vars{seen});
  engine->PushSync([](RunContext) {}, Vars{seen, held}, Vars{unseen}, {.name = "passes on"});
  int runs = 0;
  const auto renew = [&] {
    engine->PushSync([&](RunContext) { ++runs; }, {}, Vars{unseen},
                     {.name = "renews", .renews = Vars{unseen}});
  };
  renew();  // before the throw
  CHECK(MessageOf([&] { engine->WaitToRead(seen); }) == "bad: broken");
  called.set_value();
  CHECK(MessageOf([&] { engine->WaitToRead(unseen); }) == "bad: broken");
  CHECK(runs == 0);
  renew();
  CHECK(MessageOf([&] { engine->WaitToRead(unseen); }) == "");
  CHECK(runs == 1);
  outside.join();
}

TEST_CASE("a failure whose variables are gone is still thrown by WaitForAll") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto engine = MakeEngine(type);
    const VarHandle var = engine->NewVar();
    PushFailure(*engine, "bad", Vars{var});
    engine->DeleteVariable(var, {}, Context::cpu());
    const VarHandle fresh = engine->NewVar();  // perhaps at its address
    CHECK(MessageOf([&] { engine->WaitForVar(fresh); }) == "");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "bad: broken");
  }
}

double SecondsOf(const std::function<void()>& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// With a search among all failures for each variable, 32,000 take 60 times as long as 4,000.
TEST_CASE("the cost of a failure does not grow with the number of others") {
  auto engine = MakeEngine("threaded");
  const auto run = [&](size_t count) {
    Vars vars(count);
    for (VarHandle& var : vars) var = engine->NewVar();
    for (const VarHandle var : vars) PushFailure(*engine, "bad", Vars{var});
    const auto renew = [&] {
      for (const VarHandle var : vars)
        engine->PushSync([](RunContext) {}, {}, Vars{var}, {.name = "renews", .renews = Vars{var}});
      engine->PushSync([](RunContext) {}, {}, vars, {.name = "renews", .renews = vars});
    };
    renew();  // passed on, since nobody has seen them
    // The latest first, so that a search from the earliest is seen too.
    for (size_t i = count; i-- > 0;) CHECK_THROWS_AS(engine->WaitToRead(vars[i]), Error);
    renew();
    engine->WaitForAll();
  };
  run(100);
  double few = 1e9, many = 1e9;
  for (int i = 0; i < 3; ++i) {
    few = std::min(few, SecondsOf([&] { run(4000); }));
    many = std::min(many, SecondsOf([&] { run(32000); }));
  }
  CAPTURE(few);
  CAPTURE(many);
  CHECK(many < 24 * few);
}

}  // namespace
}  // namespace mxtrain::engine
