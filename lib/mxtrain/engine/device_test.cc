// SPDX-License-Identifier: Apache-2.0
// The engine's contract for devices with streams, on fake devices: issued and done, waits between
// streams, failures.
#include <doctest/doctest.h>

#include <atomic>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"
#include "tests/support/engines.h"
#include "tests/support/error_message.h"
#include "tests/support/fake_stream.h"
#include "tests/support/gpus.h"

namespace mxtrain::engine {
namespace {

using test::FakeStream;
using test::kGpu;
using test::MessageOf;
using test::Vars;

std::unique_ptr<Engine> MakeGpuEngine(const std::string& type = "threaded") {
  EngineOptions options;
  options.type = type;
  options.gpu_count = [] { return 2; };
  options.new_stream = [](Context ctx, FnProperty) -> std::unique_ptr<Stream> {
    return ctx.type == DeviceType::kGPU ? std::make_unique<FakeStream>() : nullptr;
  };
  return Create(std::move(options));
}

// Blocks a device's work until it is opened.
class KernelGate {
 public:
  void Open() { open_.set_value(); }
  std::function<void()> Kernel() {
    return [opened = opened_] { opened.wait(); };
  }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

// Set by one thread and awaited by another.
class Flag {
 public:
  void Set() { set_.set_value(); }
  void Await() { is_set_.wait(); }
  bool now() const { return ComesWithin(std::chrono::seconds(0)); }
  bool ComesWithin(std::chrono::milliseconds time) const {
    return is_set_.wait_for(time) == std::future_status::ready;
  }

 private:
  std::promise<void> set_;
  std::shared_future<void> is_set_ = set_.get_future().share();
};

TEST_CASE("the same stream needs issued; the host needs done") {
  auto engine = MakeGpuEngine();
  const VarHandle var = engine->NewVar();
  KernelGate gate;
  Flag issued_behind, host_ran, deleted;
  int value = 0, seen = 0;
  engine->PushSync(
      [&](RunContext ctx) { test::Do(ctx, gate.Kernel()), test::Do(ctx, [&] { value = 1; }); }, {},
      Vars{var}, {.ctx = kGpu});
  engine->PushSync(
      [&](RunContext ctx) { test::Do(ctx, [&] { value *= 10; }), issued_behind.Set(); }, {},
      Vars{var}, {.ctx = kGpu});
  engine->PushSync([&](RunContext) { seen = value, host_ran.Set(); }, Vars{var}, {}, {});
  engine->DeleteVariable(
      var, [&](RunContext) { deleted.Set(); }, kGpu);
  auto all = std::async(std::launch::async, [&] { engine->WaitForAll(); });
  issued_behind.Await();  // while the gate is closed
  // A function of no variable on the CPU's one worker, pushed after the host function could have
  // started: it overtakes waiting functions.
  Flag later;
  engine->PushSync([&](RunContext) { later.Set(); }, {}, {}, {});
  later.Await();
  CHECK_FALSE(host_ran.now());
  CHECK_FALSE(deleted.now());
  CHECK(all.wait_for(std::chrono::milliseconds(1)) == std::future_status::timeout);
  gate.Open();
  all.get();
  CHECK(seen == 10);
  CHECK(host_ran.now());
  CHECK(deleted.now());
}

TEST_CASE("memory that only a device uses is freed when its work is done") {
  auto engine = MakeGpuEngine();
  for (const bool reads : {false, true}) {
    CAPTURE(reads);
    const VarHandle var = engine->NewVar();
    KernelGate gate;
    Flag issued, freed;
    engine->PushSync([&](RunContext ctx) { test::Do(ctx, gate.Kernel()), issued.Set(); },
                     reads ? Vars{var} : Vars{}, reads ? Vars{} : Vars{var}, {.ctx = kGpu});
    engine->DeleteVariable(
        var, [&](RunContext) { freed.Set(); }, kGpu);
    issued.Await();
    CHECK_FALSE(freed.ComesWithin(std::chrono::milliseconds(5)));
    gate.Open();
    engine->WaitForAll();
    CHECK(freed.now());
  }
}

TEST_CASE("a wait is not over at issue") {
  auto engine = MakeGpuEngine();
  const VarHandle var = engine->NewVar();
  for (const bool write : {false, true}) {
    KernelGate gate;
    Flag issued;
    std::atomic<int> done = 0;
    engine->PushSync(
        [&](RunContext ctx) {
          test::Do(ctx, gate.Kernel()), test::Do(ctx, [&] { done = 1; }), issued.Set();
        },
        {}, Vars{var}, {.ctx = kGpu});
    auto wait = std::async(std::launch::async,
                           [&] { write ? engine->WaitForVar(var) : engine->WaitToRead(var); });
    issued.Await();
    CHECK(wait.wait_for(std::chrono::milliseconds(5)) == std::future_status::timeout);
    gate.Open();
    wait.get();
    CHECK(done == 1);
  }
}

TEST_CASE(
    "another stream waits on the device: its functions issue at once and their work comes later") {
  auto engine = MakeGpuEngine();
  const VarHandle var = engine->NewVar();
  for (const PushOptions& other :
       {PushOptions{.ctx = kGpu, .property = FnProperty::kCopyFromDevice},
        PushOptions{.ctx = Context::gpu(1)}}) {
    KernelGate gate;
    Flag issued;
    // Of the streams' work: ordered by the event, else ThreadSanitizer reports it.
    std::vector<int> order;
    engine->PushSync(
        [&](RunContext ctx) {
          test::Do(ctx, gate.Kernel()), test::Do(ctx, [&] { order.push_back(1); });
        },
        {}, Vars{var}, {.ctx = kGpu});
    engine->PushSync(
        [&](RunContext ctx) { test::Do(ctx, [&] { order.push_back(2); }), issued.Set(); },
        Vars{var}, {}, other);
    // After the read.
    engine->PushSync([&](RunContext ctx) { test::Do(ctx, [&] { order.push_back(3); }); }, {},
                     Vars{var}, {.ctx = kGpu});
    issued.Await();  // while the gate is closed
    gate.Open();
    engine->WaitToRead(var);
    CHECK(order == std::vector<int>{1, 2, 3});
  }
}

TEST_CASE("another stream waits for the work that it needs, not for what was issued behind it") {
  auto engine = MakeGpuEngine();
  const VarHandle var = engine->NewVar();
  KernelGate needed, later;
  Flag other_is_free, later_issued, done;
  const PushOptions other = {.ctx = Context::gpu(1)};
  engine->PushSync([&](RunContext) { other_is_free.Await(); }, {}, {}, other);
  engine->PushSync([&](RunContext ctx) { test::Do(ctx, needed.Kernel()); }, {}, Vars{var},
                   {.ctx = kGpu});
  engine->PushSync([&](RunContext ctx) { test::Do(ctx, [&] { done.Set(); }); }, Vars{var}, {},
                   other);
  engine->PushSync([&](RunContext ctx) { test::Do(ctx, later.Kernel()), later_issued.Set(); }, {},
                   {}, {.ctx = kGpu});
  later_issued.Await();  // before the other stream can ask for an event
  other_is_free.Set();
  needed.Open();
  CHECK(done.ComesWithin(std::chrono::seconds(20)));
  later.Open();
  engine->WaitForAll();
}

TEST_CASE("a copy is known to be done while a later one in its stream waits for a computation") {
  for (const FnProperty property : {FnProperty::kCopyToDevice, FnProperty::kCopyFromDevice}) {
    auto engine = MakeGpuEngine();
    const VarHandle copied = engine->NewVar(), computed = engine->NewVar();
    KernelGate gate;
    Flag issued;
    engine->PushSync([&](RunContext ctx) { test::Do(ctx, gate.Kernel()); }, {}, Vars{computed},
                     {.ctx = kGpu});
    const PushOptions copy = {.ctx = kGpu, .property = property};
    engine->PushSync([](RunContext ctx) { test::Do(ctx, [] {}); }, Vars{copied}, {}, copy);
    for (int i = 0; i < 20; ++i)
      engine->PushSync([](RunContext ctx) { test::Do(ctx, [] {}); }, {}, Vars{computed}, copy);
    engine->PushSync([&](RunContext) { issued.Set(); }, {}, Vars{computed}, copy);
    issued.Await();
    auto wait = std::async(std::launch::async, [&] { engine->WaitForVar(copied); });
    CHECK(wait.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    gate.Open();
    wait.get();
    engine->WaitForAll();
  }
}

TEST_CASE("a sequence mixes the host and devices, and its runs do not overlap") {
  for (const char* type : {"naive", "threaded"}) {
    auto engine = MakeGpuEngine(type);
    int on_device = 0, on_host = 0, on_other = 0;  // bytes of an arena: no variable guards them
    std::vector<SequenceOp> ops(4);
    ops[0].ctx = ops[3].ctx = kGpu;
    ops[2].ctx = Context::gpu(1);
    ops[0].fn = [&](RunContext ctx) { test::Do(ctx, [&] { on_device = on_host + 1; }); };
    ops[1].fn = [&](RunContext) { on_host = on_device * 2; };
    ops[2].fn = [&](RunContext ctx) { test::Do(ctx, [&] { on_other = on_device; }); };
    ops[3].fn = [&](RunContext ctx) { test::Do(ctx, [&] { on_device = -on_host - on_other; }); };
    ops[1].after = ops[2].after = {0};
    ops[3].after = {1, 2};
    ops[3].writes = {0};
    const SequenceHandle sequence = engine->NewSequence(std::move(ops), 1);
    const VarHandle port = engine->NewVar();
    int expected_host = 0, expected_device = 0;
    for (int i = 0; i < 10; ++i) {
      engine->Push(sequence, Vars{port});
      expected_device = expected_host + 1;
      expected_host = expected_device * 2;
      expected_device = -expected_host - expected_device;
    }
    engine->WaitToRead(port);
    CHECK(on_device == expected_device);
    CHECK(on_host == expected_host);
    engine->DeleteSequence(sequence);
    engine->WaitForAll();
  }
}

TEST_CASE("a run of a sequence follows all of the run before it, on other streams too") {
  auto engine = MakeGpuEngine();
  std::atomic<int> runs = 0;
  KernelGate gate;
  Flag issued_again;
  std::vector<int> order;
  std::vector<SequenceOp> ops(2);
  ops[0].ctx = kGpu;
  ops[0].fn = [&](RunContext ctx) {
    test::Do(ctx, [&] { order.push_back(0); });
    if (++runs == 2) issued_again.Set();
  };
  ops[1].ctx = Context::gpu(1);
  ops[1].after = {0};
  ops[1].fn = [&](RunContext ctx) {
    test::Do(ctx, gate.Kernel()), test::Do(ctx, [&] { order.push_back(1); });
  };
  const SequenceHandle sequence = engine->NewSequence(std::move(ops), 0);
  engine->Push(sequence, {});
  engine->Push(sequence, {});
  issued_again.Await();                                       // issuing does not wait
  std::this_thread::sleep_for(std::chrono::milliseconds(5));  // time for the work to go wrong
  gate.Open();
  engine->WaitForAll();
  CHECK(order == std::vector<int>{0, 1, 0, 1});
  engine->DeleteSequence(sequence);
}

// Work that a thread of its own gives to the stream after the body has returned, when later work of
// the stream is already known to be done.
TEST_CASE("an asynchronous function of a device is issued when its callback was called") {
  enum class Dependant { kHost, kOtherStream, kWait, kDeletion, kWaitForAll };
  for (const Dependant dependant : {Dependant::kHost, Dependant::kOtherStream, Dependant::kWait,
                                    Dependant::kDeletion, Dependant::kWaitForAll}) {
    CAPTURE(static_cast<int>(dependant));
    auto engine = MakeGpuEngine();
    const VarHandle var = engine->NewVar(), other = engine->NewVar();
    KernelGate gate;
    Flag go, called, reached;
    std::thread outside;
    int value = 0;
    std::atomic<int> seen = -1;
    engine->PushAsync(
        [&](RunContext ctx, Callback callback) {
          outside = std::thread([&, ctx, callback = std::move(callback)]() mutable {
            go.Await();
            test::Do(ctx, gate.Kernel()), test::Do(ctx, [&] { value = 7; });
            callback();
            called.Set();
          });
        },
        {}, Vars{var}, {.ctx = kGpu, .name = "async"});
    engine->PushSync([](RunContext ctx) { test::Do(ctx, [] {}); }, {}, Vars{other}, {.ctx = kGpu});
    engine->WaitForVar(other);
    go.Set();
    called.Await();
    const auto see = [&] { seen = value, reached.Set(); };
    std::future<void> waiting;
    switch (dependant) {
      case Dependant::kHost:
        engine->PushSync([&](RunContext) { see(); }, Vars{var}, {}, {});
        break;
      case Dependant::kOtherStream:
        engine->PushSync([&](RunContext ctx) { test::Do(ctx, see); }, Vars{var}, {},
                         {.ctx = Context::gpu(1)});
        break;
      case Dependant::kDeletion:
        engine->DeleteVariable(
            var, [&](RunContext) { see(); }, kGpu);
        break;
      case Dependant::kWait:
      case Dependant::kWaitForAll:
        waiting = std::async(std::launch::async, [&] {
          dependant == Dependant::kWait ? engine->WaitToRead(var) : engine->WaitForAll();
          see();
        });
    }
    CHECK_FALSE(reached.ComesWithin(std::chrono::milliseconds(10)));
    gate.Open();
    reached.Await();
    CHECK(seen == 7);
    outside.join();
    engine->WaitForAll();
  }
}

TEST_CASE("an exception at issue is an error as on the CPU") {
  for (const char* type : {"naive", "threaded"}) {
    auto engine = MakeGpuEngine(type);
    const VarHandle var = engine->NewVar();
    engine->PushSync([](RunContext) { Throw(ErrorKind::kDevice, "no such kernel"); }, {}, Vars{var},
                     {.ctx = kGpu, .name = "conv"});
    bool ran = false;
    engine->PushSync([&](RunContext) { ran = true; }, Vars{var}, {}, {.ctx = Context::gpu(1)});
    CHECK(MessageOf([&] { engine->WaitToRead(var); }) == "conv: no such kernel");
    CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");
    CHECK_FALSE(ran);
  }
}

TEST_CASE(
    "a device that fails later fails the oldest function not known to be done; other devices "
    "continue") {
  auto engine = MakeGpuEngine();
  const VarHandle good = engine->NewVar(), bad = engine->NewVar(), host = engine->NewVar();
  engine->PushSync([](RunContext ctx) { test::Do(ctx, [] {}); }, {}, Vars{good},
                   {.ctx = kGpu, .name = "before"});
  engine->WaitToRead(good);
  engine->PushSync(
      [](RunContext ctx) { static_cast<FakeStream*>(ctx.stream)->Break("illegal address"); }, {},
      Vars{bad}, {.ctx = kGpu, .name = "conv1"});
  bool ran = false, freed = false;
  engine->PushSync([&](RunContext) { ran = true; }, Vars{bad}, Vars{host}, {.name = "metrics"});
  CHECK(MessageOf([&] { engine->WaitToRead(host); }) == "conv1: illegal address");
  CHECK(MessageOf([&] { engine->WaitToRead(host); }) == "");  // once
  CHECK(MessageOf([&] { engine->WaitToRead(bad); }) == "conv1: illegal address");
  CHECK(MessageOf([&] { engine->WaitToRead(bad); }) == "");
  CHECK_FALSE(ran);
  CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");
  // The device computes nothing more; every attempt fails with its own name.
  engine->PushSync([&](RunContext) { ran = true; }, {}, Vars{good}, {.ctx = kGpu, .name = "conv2"});
  CHECK(MessageOf([&] { engine->WaitToRead(good); }) == "conv2: conv1: illegal address");
  CHECK_FALSE(ran);
  // Its memory is still freed.
  engine->DeleteVariable(
      good, [&](RunContext) { freed = true; }, kGpu);
  engine->WaitForAll();
  CHECK(freed);
  // Other devices and the host continue.
  int value = 0;
  engine->PushSync([&](RunContext ctx) { test::Do(ctx, [&] { value = 1; }); }, {}, Vars{host},
                   {.ctx = Context::gpu(1)});
  engine->PushSync([&](RunContext) { ++value; }, {}, Vars{host}, {});
  engine->WaitForAll();
  CHECK(value == 2);
}

TEST_CASE("WaitForAll throws a failure that no wait on a variable has thrown, once") {
  auto engine = MakeGpuEngine();
  engine->PushSync(
      [](RunContext ctx) { static_cast<FakeStream*>(ctx.stream)->Break("illegal address"); }, {},
      {}, {.ctx = kGpu, .name = "conv"});
  CHECK(MessageOf([&] { engine->WaitForAll(); }) == "conv: illegal address");
  CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");
}

TEST_CASE("a GPU that does not exist is rejected at the push, in both engines") {
  for (const char* type : {"naive", "threaded"}) {
    auto engine = MakeGpuEngine(type);
    CHECK(MessageOf([&] {
            engine->PushSync([](RunContext) {}, {}, {}, {.ctx = Context::gpu(2), .name = "conv"});
          }) ==
          "'conv' was pushed to gpu(2), for which this engine has no workers; push it to an "
          "existing device, such as cpu(0)");
  }
}

TEST_CASE(
    "inside a function a deletion is awaited if only a device delays it, but not if it waits for "
    "the function") {
  auto engine = MakeGpuEngine();
  const VarHandle used = engine->NewVar(), own = engine->NewVar();
  KernelGate gate;
  Flag issued, freed, asked;
  bool freed_by_then = false, waits_for_itself = true;
  engine->PushSync([&](RunContext ctx) { test::Do(ctx, gate.Kernel()), issued.Set(); }, {},
                   Vars{used}, {.ctx = kGpu});
  engine->DeleteVariable(
      used, [&](RunContext) { freed.Set(); }, kGpu);
  engine->PushSync(
      [&](RunContext) {
        asked.Set();
        engine->AwaitDeletion();
        freed_by_then = freed.now();
        waits_for_itself = engine->AwaitDeletion();  // that of `own` comes after this
      },
      {}, Vars{own}, {.ctx = kGpu});
  engine->DeleteVariable(
      own, [](RunContext) {}, kGpu);
  issued.Await(), asked.Await();
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  gate.Open();
  engine->WaitForAll();
  CHECK(freed_by_then);
  CHECK_FALSE(waits_for_itself);
}

TEST_CASE("outside a function every deletion is awaited") {
  auto engine = MakeGpuEngine();
  CHECK_FALSE(engine->AwaitDeletion());
  KernelGate gate;
  std::atomic<int> freed = 0;
  const VarHandle var = engine->NewVar();
  engine->PushSync([&](RunContext) { gate.Kernel()(); }, {}, Vars{var}, {});
  engine->DeleteVariable(
      var, [&](RunContext) { ++freed; }, Context::cpu());
  auto opener = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.Open();
  });
  CHECK(engine->AwaitDeletion());
  CHECK(freed == 1);
  CHECK_FALSE(engine->AwaitDeletion());
}

TEST_CASE("a GPU without a stream works synchronously") {
  EngineOptions options;
  options.gpu_count = [] { return 1; };
  auto engine = Create(std::move(options));
  const VarHandle var = engine->NewVar();
  int value = 0;
  engine->PushSync([&](RunContext) { value = 7; }, {}, Vars{var}, {.ctx = kGpu});
  engine->WaitToRead(var);
  CHECK(value == 7);
}

}  // namespace
}  // namespace mxtrain::engine
