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

}  // namespace
}  // namespace mxtrain::test
