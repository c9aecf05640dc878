// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/train/trainer.h"

#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

TEST_CASE("a loss whose label is missing from the data is rejected before training") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  const Symbol scores =
      Symbol::Create(TestRegistry(), "FullyConnected", "scores", {{"num_hidden", "3"}},
                     std::vector{Symbol::Variable("data")});
  spec.symbol = Symbol::Create(TestRegistry(), "SoftmaxOutput", "other", {}, std::vector{scores});
  CHECK_THROWS_WITH(Process(data, spec),
                    "the training data have no label 'other_label', which 'other' needs");
}

TEST_CASE("the end of a trainer leaves the errors of others to those who wait for them") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 1;
  Process process(data, spec);
  const NDArray other = NDArray::Zeros(*process.runtime, TShape{1});
  Log log;
  process.trainer->Run(log);
  const engine::VarHandle writes[] = {other.var()};
  process.runtime->engine().PushSync([](RunContext) { Throw(ErrorKind::kData, "not ours"); }, {},
                                     writes, {.name = "other"});
  process.trainer.reset();
  CHECK_THROWS_WITH(process.runtime->engine().WaitForAll(), "other: not ours");
}

// QuietNet with its second layer in a group.
Symbol TwoGroups() {
  const auto layer = [](const char* op, const char* name, const Symbol& x, const Kwargs& kwargs,
                        const char* group) {
    return Symbol::Create(TestRegistry(), op, name, kwargs, std::vector{x}, {},
                          {{"ctx_group", group}});
  };
  const Symbol hidden =
      layer("FullyConnected", "fc1", Symbol::Variable("data"), {{"num_hidden", "16"}}, "first");
  const Symbol bent = layer("Activation", "act1", hidden, {{"act_type", "tanh"}}, "first");
  const Symbol scores = layer("FullyConnected", "fc2", bent, {{"num_hidden", "3"}}, "second");
  return layer("SoftmaxOutput", "softmax", scores, {}, "second");
}

TEST_CASE("groups of layers train on two devices, to the bits of one") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = TwoGroups();
  spec.epochs = 2;
  for (const char* optimizer : {"sgd", "adam"}) {
    CAPTURE(optimizer);
    spec.optimizer = {optimizer, {{"lr", "0.01"}}};
    for (const int64_t grad_accum : {1, 2}) {
      spec.grad_accum = grad_accum;
      spec.group2ctx = {};
      const Outcome one = RunWhole(data, spec);
      spec.group2ctx = {{"second", Context::cpu(1)}};
      const Outcome two = RunWhole(data, spec);
      CHECK(two.bits == one.bits);
      REQUIRE(two.epochs.size() == one.epochs.size());
      for (size_t e = 0; e < one.epochs.size(); ++e) CheckSameEpoch(two.epochs[e], one.epochs[e]);
    }
  }
  Process process(data, spec);
  CHECK(process.trainer->executor().arg("fc1_weight").ctx() == Context::cpu(0));
  CHECK(process.trainer->executor().arg("fc2_weight").ctx() == Context::cpu(1));
}

TEST_CASE("what needs all parameters on one device is refused for groups on several") {
  const TempDir data;
  WriteTable(data);
  RunSpec placed;
  placed.symbol = TwoGroups();
  placed.group2ctx = {{"second", Context::cpu(1)}};
  RunSpec spec = placed;
  spec.clip_norm = 1;
  CHECK_THROWS_WITH(Process(data, spec),
                    "clipping by the global norm is not supported for a net on several devices; "
                    "remove one of them");
  spec.group2ctx = {{"second", Context::cpu(0)}};  // its own device
  CHECK_NOTHROW(Process(data, spec));
  spec = placed;
  spec.average_decay = 0.9;
  CHECK_THROWS_WITH(Process(data, spec),
                    "an average of the weights is not supported for a net on several devices; "
                    "remove one of them");
  spec = placed;
  spec.workers = 2;
  CHECK_THROWS_WITH(Process(data, spec),
                    doctest::Contains("while 2 workers share each batch; train with one worker"));
}

}  // namespace
}  // namespace mxtrain::test
