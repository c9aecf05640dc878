// SPDX-License-Identifier: Apache-2.0
// Frozen sequences: edges, ports, overlap, errors, deletion.
#include <doctest/doctest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/engine/engine.h"
#include "tests/support/engines.h"
#include "tests/support/error_message.h"

namespace mxtrain::engine {
namespace {

using test::kEngineTypes;
using test::MakeEngine;
using test::MessageOf;
using test::Vars;
// Operations that write their names into a text.
class Recorder {
 public:
  SequenceOp Op(const std::string& name, std::vector<int> after, std::vector<int> reads = {},
                std::vector<int> writes = {}) {
    SequenceOp op;
    op.name = name;
    op.fn = [this, name](RunContext) { Add(name); };
    op.after = std::move(after);
    op.reads = std::move(reads);
    op.writes = std::move(writes);
    return op;
  }
  SequenceOp Failing(const std::string& name, std::vector<int> after,
                     std::vector<int> writes = {}) {
    SequenceOp op = Op(name, std::move(after), {}, std::move(writes));
    op.fn = [](RunContext) { Throw(ErrorKind::kData, "broken"); };
    return op;
  }
  void Add(const std::string& name) {
    std::lock_guard lock(mutex_);
    text_ += name;
  }
  std::string Take() {
    std::lock_guard lock(mutex_);
    return std::exchange(text_, "");
  }

 private:
  std::mutex mutex_;
  std::string text_;
};

std::vector<SequenceOp> List(SequenceOp a, SequenceOp b, SequenceOp c) {
  std::vector<SequenceOp> ops;
  ops.push_back(std::move(a));
  ops.push_back(std::move(b));
  ops.push_back(std::move(c));
  return ops;
}

}  // namespace

TEST_CASE("a sequence runs along its edges at every push") {
  for (const char* type : kEngineTypes) {
    for (int workers : {1, 3}) {
      auto engine = MakeEngine(type, workers);
      Recorder recorder;
      SequenceHandle chain = engine->NewSequence(
          List(recorder.Op("a", {}), recorder.Op("b", {0}), recorder.Op("c", {1, 0, 1})), 0);
      for (int i = 0; i < 3; ++i) engine->Push(chain, {});
      engine->WaitForAll();
      CHECK(recorder.Take() == "abcabcabc");
      engine->DeleteSequence(chain);
    }
  }
}

TEST_CASE("mistakes in a sequence are rejected when it is created or pushed") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    Recorder recorder;
    CHECK(MessageOf([&] {
            engine->NewSequence(
                List(recorder.Op("a", {}), recorder.Op("b", {1}), recorder.Op("c", {})), 0);
          }) == "operation 'b' of a sequence names earlier operation 1; expected 0 to 0");
    CHECK(MessageOf([&] {
            engine->NewSequence(
                List(recorder.Op("a", {}, {2}), recorder.Op("b", {}), recorder.Op("c", {})), 2);
          }) == "operation 'a' of a sequence names port 2; expected 0 to 1");
    SequenceHandle sequence = engine->NewSequence(
        List(recorder.Op("a", {}, {0}), recorder.Op("b", {}, {1}), recorder.Op("c", {})), 2);
    VarHandle var = engine->NewVar();
    CHECK(MessageOf([&] { engine->Push(sequence, Vars{var}); }) ==
          "a sequence with 2 ports was pushed with 1 variables; bind one to each port");
    CHECK(MessageOf([&] {
            engine->Push(sequence, Vars{var, var});
          }).starts_with("'sequence' names one variable twice"));
    engine->DeleteSequence(sequence);
  }
}

TEST_CASE("a written port counts as a write, a port that is only read does not") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    Recorder recorder;
    VarHandle in = engine->NewVar(), out = engine->NewVar(), unused = engine->NewVar();
    SequenceHandle sequence =
        engine->NewSequence(List(recorder.Op("a", {}, {0}), recorder.Op("b", {0}, {0, 1}, {1}),
                                 recorder.Op("c", {1}, {1})),
                            3);
    engine->Push(sequence, Vars{in, out, unused});
    engine->Push(sequence, Vars{in, out, unused});
    engine->WaitForAll();
    CHECK(engine->Version(in) == 0);
    CHECK(engine->Version(out) == 2);
    CHECK(engine->Version(unused) == 0);
    engine->DeleteSequence(sequence);
  }
}

TEST_CASE(
    "a port is released after its last operation: its successors overlap with the rest of the "
    "sequence") {
  auto engine = MakeEngine("threaded");
  Recorder recorder;
  VarHandle last_gradient = engine->NewVar(), first_gradient = engine->NewVar();
  SequenceHandle backward = engine->NewSequence(
      List(recorder.Op("a", {}, {}, {0}), recorder.Op("b", {0}), recorder.Op("c", {1}, {}, {1})),
      2);
  std::promise<void> pushed;
  engine->PushSync([future = pushed.get_future()](RunContext) mutable { future.wait(); }, {}, {},
                   {.priority = 9});
  engine->Push(backward, Vars{last_gradient, first_gradient});
  engine->PushSync([&](RunContext) { recorder.Add("L"); }, Vars{last_gradient}, {},
                   {.priority = 1});
  engine->PushSync([&](RunContext) { recorder.Add("F"); }, Vars{first_gradient}, {},
                   {.priority = 1});
  pushed.set_value();
  engine->WaitForAll();
  // One lane: the push of the last layer runs between two operations of backward.
  CHECK(recorder.Take() == "aLbcF");
  engine->DeleteSequence(backward);
}

TEST_CASE("functions of lower priority wait for the end of a running chain") {
  auto engine = MakeEngine("threaded");
  Recorder recorder;
  SequenceHandle chain = engine->NewSequence(
      List(recorder.Op("a", {}), recorder.Op("b", {0}), recorder.Op("c", {1})), 0);
  std::promise<void> pushed;
  engine->PushSync([future = pushed.get_future()](RunContext) mutable { future.wait(); }, {}, {},
                   {.priority = 9});
  engine->PushSync([&](RunContext) { recorder.Add("x"); }, {}, {}, {.priority = -1});
  engine->Push(chain, {});
  pushed.set_value();
  engine->WaitForAll();
  CHECK(recorder.Take() == "abcx");
  engine->DeleteSequence(chain);
}

TEST_CASE(
    "a port is acquired before its first operation only: earlier operations do not wait for it") {
  auto engine = MakeEngine("threaded");
  VarHandle weight = engine->NewVar();
  std::promise<void> first_ran;
  auto wait_for_first = first_ran.get_future();
  // The pull of the weight ends only after the first operation, which does not need it.
  engine->PushSync([&](RunContext) { wait_for_first.wait(); }, {}, Vars{weight},
                   {.property = FnProperty::kComm});
  Recorder recorder;
  std::vector<SequenceOp> ops =
      List(recorder.Op("a", {}), recorder.Op("b", {0}, {0}), recorder.Op("c", {1}));
  ops[0].fn = [&](RunContext) { first_ran.set_value(); };
  SequenceHandle sequence = engine->NewSequence(std::move(ops), 1);
  engine->Push(sequence, Vars{weight});
  engine->WaitForAll();
  CHECK(recorder.Take() == "bc");
  engine->DeleteSequence(sequence);
}

TEST_CASE("operations of one sequence run on the workers that they ask for") {
  auto engine = MakeEngine("threaded");
  std::promise<void> copied;
  auto wait_for_copy = copied.get_future();
  Recorder recorder;
  std::vector<SequenceOp> ops =
      List(recorder.Op("a", {}), recorder.Op("b", {}), recorder.Op("c", {0, 1}));
  ops[0].fn = [&](RunContext) { wait_for_copy.wait(); };
  ops[1].fn = [&](RunContext) { copied.set_value(); };
  ops[1].property = FnProperty::kCopyToDevice;
  SequenceHandle sequence = engine->NewSequence(std::move(ops), 0);
  engine->Push(sequence, {});
  engine->WaitForAll();
  CHECK(recorder.Take() == "c");
  engine->DeleteSequence(sequence);
}

TEST_CASE(
    "a failed operation skips its successors and marks the ports that they would have written") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 2);
    Recorder recorder;
    VarHandle bad = engine->NewVar(), after_bad = engine->NewVar(), good = engine->NewVar();
    std::vector<SequenceOp> ops =
        List(recorder.Failing("conv1", {}, {0}), recorder.Op("b", {0}, {}, {1}),
             recorder.Op("c", {}, {}, {2}));
    SequenceHandle sequence = engine->NewSequence(std::move(ops), 3);
    for (int i = 0; i < 2; ++i) {  // the second push shows that nothing of the first is left
      engine->Push(sequence, Vars{bad, after_bad, good});
      CHECK(MessageOf([&] { engine->WaitForVar(good); }) == "");
      CHECK(MessageOf([&] { engine->WaitForVar(after_bad); }) == "conv1: broken");
      CHECK(MessageOf([&] { engine->WaitForVar(bad); }) == "conv1: broken");
      CHECK(MessageOf([&] { engine->WaitForAll(); }) == "");
      CHECK(recorder.Take() == "c");
    }
    engine->DeleteSequence(sequence);
  }
}

TEST_CASE("an error that a port brings in skips the operations that name it, and passes through") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type, 2);
    Recorder recorder;
    VarHandle in = engine->NewVar(), out = engine->NewVar();
    SequenceHandle sequence = engine->NewSequence(
        List(recorder.Op("a", {}), recorder.Op("b", {0}, {0}), recorder.Op("c", {1}, {}, {1})), 2);
    engine->PushSync([](RunContext) { Throw(ErrorKind::kData, "no such file"); }, {}, Vars{in},
                     {.name = "read"});
    engine->Push(sequence, Vars{in, out});
    CHECK(MessageOf([&] { engine->WaitToRead(out); }) == "read: no such file");
    CHECK(recorder.Take() == "a");
    CHECK(MessageOf([&] { engine->WaitForVar(in); }) == "read: no such file");
    engine->Push(sequence, Vars{in, out});
    engine->WaitForAll();
    CHECK(recorder.Take() == "abc");
    engine->DeleteSequence(sequence);
  }
}

TEST_CASE("a sequence renews the ports in `renews`, and no others") {
  for (const char* type : kEngineTypes) {
    CAPTURE(type);
    auto engine = MakeEngine(type);
    VarHandle renewed = engine->NewVar(), kept = engine->NewVar();
    int runs = 0;
    const auto make = [&](std::vector<int> writes, std::vector<int> renews) {
      SequenceOp op;
      op.name = "op";
      op.fn = [&](RunContext) { ++runs; };
      op.writes = std::move(writes);
      op.renews = std::move(renews);
      std::vector<SequenceOp> ops;
      ops.push_back(std::move(op));
      return engine->NewSequence(std::move(ops), 2);
    };
    CHECK(MessageOf([&] { make({0}, {1}); }) ==
          "operation 'op' of a sequence renews port 1, which it does not write");
    SequenceHandle first = make({0}, {0}), both = make({0, 1}, {0});
    VarHandle third = engine->NewVar();
    engine->PushSync([](RunContext) { Throw(ErrorKind::kData, "no"); }, {},
                     Vars{renewed, kept, third}, {.name = "bad"});
    CHECK(MessageOf([&] { engine->WaitToRead(third); }) == "bad: no");
    engine->Push(first, Vars{renewed, kept});
    CHECK(MessageOf([&] { engine->WaitToRead(renewed); }) == "");
    CHECK(runs == 1);
    engine->Push(both, Vars{renewed, kept});
    CHECK(MessageOf([&] { engine->WaitToRead(renewed); }) == "bad: no");
    CHECK(MessageOf([&] { engine->WaitToRead(kept); }) == "bad: no");
    CHECK(runs == 1);
    for (SequenceHandle sequence : {first, both}) engine->DeleteSequence(sequence);
  }
}

TEST_CASE("a sequence may be deleted while it runs, and an empty one does nothing") {
  for (const char* type : kEngineTypes) {
    auto engine = MakeEngine(type);
    auto owned = std::make_shared<int>(0);
    std::vector<SequenceOp> ops(1);
    ops[0].name = "count";
    ops[0].fn = [owned](RunContext) { ++*owned; };
    SequenceHandle sequence = engine->NewSequence(std::move(ops), 0);
    for (int i = 0; i < 20; ++i) engine->Push(sequence, {});
    engine->DeleteSequence(sequence);
    engine->WaitForAll();
    CHECK(*owned == 20);
    CHECK(owned.use_count() == 1);
    SequenceHandle empty = engine->NewSequence({}, 1);
    VarHandle var = engine->NewVar();
    engine->Push(empty, Vars{var});
    engine->WaitForAll();
    engine->DeleteSequence(empty);
  }
}

}  // namespace mxtrain::engine
