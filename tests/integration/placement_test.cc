// SPDX-License-Identifier: Apache-2.0
// Groups of layers on two GPUs: memory that only its own GPU reads, work that is done later.
#include <doctest/doctest.h>

#include "tests/support/fake_gpu.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

const std::map<std::string, Context> kOnTwo = {{"a", Context::gpu(0)}, {"b", Context::gpu(1)}};

Result SevenSteps(Runtime& runtime, const SmallNet& net, const Symbol& symbol, Context ctx,
                  const std::map<std::string, Context>& groups) {
  executor::BindRequest request = RequestFor(net, symbol);
  request.ctx = ctx;
  request.group2ctx = groups;
  const auto executor = BindWithValues(runtime, symbol, request);
  for (int step = 0; step < 7; ++step) {
    executor->Step(
        MakeInputs(runtime, net, executor->input_names(), DType::kFloat32, std::to_string(step)));
  }
  return ResultOf(*executor);
}

TEST_CASE("groups on two GPUs give the bits of the CPU") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = NewFakeGpuRuntime(engine);
    std::vector<SmallNet> nets = SmallNets(runtime->operators());
    nets.push_back(DropoutNet(runtime->operators()));
    for (const SmallNet& net : nets) {
      CAPTURE(net.name);
      const Symbol symbol = InTurns(runtime->operators(), net.losses);
      CHECK(SevenSteps(*runtime, net, symbol, Context::gpu(0), kOnTwo) ==
            SevenSteps(*runtime, net, symbol, Context::cpu(), {}));
    }
  }
}

TEST_CASE("an executor with groups on two GPUs has its arrays there") {
  const auto runtime = NewFakeGpuRuntime();
  const SmallNet net = SmallNets(runtime->operators())[0];
  const Symbol symbol = InTurns(runtime->operators(), net.losses);
  executor::BindRequest request = RequestFor(net, symbol);
  request.ctx = Context::gpu(0);
  request.group2ctx = kOnTwo;
  const auto executor = Executor::SimpleBind(*runtime, symbol, request);
  // fc1 tanh1 fc2 relu2 fc3 softmax
  CHECK(executor->arg("fc3_weight").ctx() == Context::gpu(0));
  CHECK(executor->outputs()[0].ctx() == Context::gpu(1));
  for (const executor::ExecNode& node : executor->graph().nodes) {
    if (node.name == "softmax_label") CHECK(node.ctx == Context::gpu(1));
  }
}

TEST_CASE("a run with groups on two GPUs trains, evaluates and resumes to the bits of the CPU") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.make_runtime = [](const RunSpec& s) { return NewFakeGpuRuntime(s.engine, s.seed); };
  spec.symbol = InTurns(TestRegistry(), NoisyNet());
  spec.optimizer = {"adam", {{"lr", "0.01"}}};
  const Outcome on_cpu = RunWhole(data, spec);
  spec.ctx = Context::gpu(0);
  spec.group2ctx = kOnTwo;
  const Outcome placed = RunWhole(data, spec);
  CHECK(placed.bits == on_cpu.bits);
  REQUIRE(placed.epochs.size() == on_cpu.epochs.size());
  for (size_t e = 0; e < on_cpu.epochs.size(); ++e)
    CheckSameEpoch(placed.epochs[e], on_cpu.epochs[e]);

  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  {
    Process process(data, spec);
    std::atomic<int> stop = 0;
    StopAfter listener(8, &stop);
    CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
  }
  Process process(data, spec);
  std::vector<std::string> warnings;
  process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
  Log log;
  process.trainer->Run(log);
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == placed.last);
}

}  // namespace
}  // namespace mxtrain::test
