// SPDX-License-Identifier: Apache-2.0
// Whole runs on a device that is asynchronous and whose memory the host cannot touch: the bits are
// the CPU's.
#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <mutex>

#include "mxtrain/base/error.h"
#include "mxtrain/base/json.h"
#include "mxtrain/operator/imperative.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_stream.h"
#include "tests/support/gpus.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

TEST_CASE("whole runs: optimizer, clipping, averages, workers, evaluation, checkpoints, resume") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.make_runtime = [](const RunSpec& s) { return NewFakeGpuRuntime(s.engine, s.seed); };
  std::vector<RunSpec> specs(4, spec);
  specs[1].clip_norm = 0.5;
  specs[1].average_decay = 0.9;
  specs[2].workers = 2;
  specs[2].grad_accum = 2;
  specs[3].engine = "naive";
  specs[3].optimizer = {"adam", {{"lr", "0.01"}}};
  for (RunSpec& s : specs) {
    const Outcome on_cpu = RunWhole(data, s);
    s.ctx = kGpu;
    const Outcome on_gpu = RunWhole(data, s);
    CHECK(on_gpu.bits == on_cpu.bits);
    REQUIRE(on_gpu.epochs.size() == on_cpu.epochs.size());
    for (size_t e = 0; e < on_cpu.epochs.size(); ++e)
      CheckSameEpoch(on_gpu.epochs[e], on_cpu.epochs[e]);
  }
  // Stopped in the middle of an epoch, and continued.
  spec.ctx = kGpu;
  const Outcome whole = RunWhole(data, spec);
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  RandomState drawn;
  {
    Process process(data, spec);
    process.runtime->resources().Restore({process.runtime->resources().seed(), 17});
    std::atomic<int> stop = 0;
    StopAfter listener(8, &stop);
    CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
    drawn = process.runtime->resources().State();
  }
  Process process(data, spec);
  std::vector<std::string> warnings;
  process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
  CHECK(drawn.step >= 17);
  CHECK(process.runtime->resources().State() == drawn);
  process.runtime->resources().Restore({drawn.seed, 0});  // as in the whole run
  Log log;
  process.trainer->Run(log);
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
}

RunSpec OnTwoGpus(RunSpec spec) {
  spec.devices = {Context::gpu(0), Context::gpu(1)};
  spec.ctx = spec.devices[0];  // batches are in its pinned memory
  spec.kvstore = "device";
  spec.new_communicator = NewFakeCommunicator;
  return spec;
}

RunSpec FakeGpuSpec() {
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.make_runtime = [](const RunSpec& s) { return NewFakeGpuRuntime(s.engine, s.seed); };
  return spec;
}

// Two logical workers of the CPU add the same two halves.
TEST_CASE("whole runs on two GPUs give the bits of two workers, whichever store sums") {
  const TempDir data;
  WriteTable(data);
  std::vector<RunSpec> specs(5, FakeGpuSpec());
  specs[1].clip_norm = 0.5;
  specs[1].average_decay = 0.9;
  specs[2].grad_accum = 2;
  specs[2].optimizer = {"adam", {{"lr", "0.01"}}};
  specs[3].engine = "naive";
  specs[4].lr_mult = {{"*_bias", 0}};
  for (const RunSpec& s : specs) {
    RunSpec on_cpu = s, by_copies = OnTwoGpus(s), in_parts = OnTwoGpus(s);
    on_cpu.workers = 2;
    by_copies.kvstore = "local";
    in_parts.bucket_bytes = 1;
    const Outcome expected = RunWhole(data, on_cpu);
    for (const Outcome& outcome :
         {RunWhole(data, OnTwoGpus(s)), RunWhole(data, by_copies), RunWhole(data, in_parts)}) {
      CHECK(outcome.bits == expected.bits);
      REQUIRE(outcome.epochs.size() == expected.epochs.size());
      for (size_t e = 0; e < expected.epochs.size(); ++e)
        CheckSameEpoch(outcome.epochs[e], expected.epochs[e]);
    }
  }
}

// Two ranks of the CPU round the same gradients and sums.
TEST_CASE("whole runs on two GPUs with the wire in bfloat16 give the bits of two such ranks") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = FakeGpuSpec();
  spec.symbol = QuietNet();
  spec.dist.wire = DistOptions::Wire::kBfloat16;
  RunSpec by_ranks = spec;
  by_ranks.make_runtime = {};
  Bits expected;
  RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
    const TempDir folder;
    RunSpec own = by_ranks;
    own.group = group;
    own.folder = folder.path("checkpoints");
    Process process(data, own);
    Log log;
    process.trainer->Run(log);
    if (group->first())
      expected =
          BitsOf(LoadCheckpoint(*process.runtime, CheckpointFolder(own.folder).File("last")));
  });
  for (const int64_t bucket_bytes : {int64_t{1}, int64_t{400}, spec.bucket_bytes}) {
    RunSpec on_gpus = OnTwoGpus(spec);
    on_gpus.bucket_bytes = bucket_bytes;
    CHECK(RunWhole(data, on_gpus).bits == expected);
  }
  RunSpec exact = OnTwoGpus(spec);
  exact.dist = {};
  CHECK(RunWhole(data, exact).bits != expected);
}

// The CPU updates key by key.
TEST_CASE(
    "every optimizer gives the CPU's bits on one GPU and on two, with all weights in one update") {
  const TempDir data;
  WriteTable(data);
  std::vector<NamedSpec> optimizers = {{"sgd", {{"momentum", "0.9"}}},
                                       {"nag", {{"momentum", "0.9"}}},
                                       {"rmsprop", {{"momentum", "0.9"}}},
                                       {"rmsprop", {{"centered", "True"}, {"momentum", "0.9"}}}};
  for (const std::string& name : Optimizer::Names()) optimizers.push_back({name, {}});
  for (NamedSpec& optimizer : optimizers) {
    CAPTURE(optimizer.name);
    CAPTURE(optimizer.params.size());
    optimizer.params.emplace_back("weight_decay", "0.01");
    RunSpec spec = FakeGpuSpec();
    spec.optimizer = optimizer;
    spec.lr_schedule = {"constant", {}};
    spec.epochs = 1;
    spec.clip_norm = 0.5;
    spec.grad_accum = 2;
    spec.average_decay = 0.9;
    RunSpec on_gpu = spec, two_workers = spec;
    on_gpu.ctx = kGpu;
    CHECK(RunWhole(data, on_gpu).bits == RunWhole(data, spec).bits);
    two_workers.workers = 2;
    CHECK(RunWhole(data, OnTwoGpus(spec)).bits == RunWhole(data, two_workers).bits);
  }
}

// Number of operations by device and name in so many steps.
std::map<std::string, int> OperationsOf(const RunSpec& spec, int steps) {
  const TempDir data;
  WriteTable(data);
  Process process(data, spec);
  engine::Engine& engine = process.runtime->engine();
  process.train->Reset(0, 0);
  engine.WaitForAll();
  engine.StartProfile();
  DataBatch batch;
  for (int i = 0; i < steps; ++i) {
    REQUIRE(process.train->Next(&batch));
    process.trainer->Step(batch);
  }
  engine.StopProfile(data.path("trace.json"));
  const Json trace = Json::parse(ReadFile(data.path("trace.json")));
  std::map<Json, std::string> lanes;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "M" && event["name"] == "thread_name")
      lanes[event["tid"]] = event["args"]["name"];
  }
  std::map<std::string, int> counts;
  for (const Json& event : trace["traceEvents"]) {
    if (event["ph"] == "X") ++counts[lanes[event["tid"]] + ": " + event["name"].get<std::string>()];
  }
  return counts;
}

TEST_CASE(
    "a step on a GPU has one update for all weights and one for their averages, and clipping "
    "copies nothing to the host") {
  constexpr int kSteps = 4;
  RunSpec spec = FakeGpuSpec();
  spec.ctx = kGpu;
  spec.clip_norm = 0.5;
  spec.average_decay = 0.9;
  for (const RunSpec& s : {spec, OnTwoGpus(spec)}) {
    const auto counts = OperationsOf(s, kSteps);
    CHECK(counts.at("gpu(0) compute 0: sgd_update") == kSteps);
    const size_t devices = std::max<size_t>(1, s.devices.size());
    for (size_t d = 0; d < devices; ++d) {
      for (const char* name : {"sgd_mom_update", "multi_sum_sq", "clip_global_norm"}) {
        CAPTURE(name);
        CHECK(counts.at(format("gpu({}) compute 0: {}", d, name)) == kSteps);
      }
      // The net's output.
      CHECK(counts.at(format("gpu({}) copy from device 0: NDArray::CopyFrom", d)) == kSteps);
    }
  }
}

// Sums of halves are rounded differently: only float32 rounding, through 15 steps.
TEST_CASE("two GPUs on half batches do what one does on the whole batch") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = FakeGpuSpec();
  spec.symbol = QuietNet();
  spec.ctx = kGpu;
  spec.clip_norm = 0.5;
  CHECK(LargestDifference(RunWhole(data, spec).bits, RunWhole(data, OnTwoGpus(spec)).bits) < 2e-5);
}

TEST_CASE("a run on two GPUs is resumed to the bits of an unbroken one, and on one GPU") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = OnTwoGpus(FakeGpuSpec());
  spec.average_decay = 0.9;
  const Outcome whole = RunWhole(data, spec);
  spec.folder = folder.path("checkpoints");
  {
    Process process(data, spec);
    std::atomic<int> stop = 0;
    StopAfter listener(8, &stop);
    CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
  }
  const std::string stopped = ReadFile(CheckpointFolder(spec.folder).File("last"));
  const auto resume = [&](const RunSpec& s) {
    Process process(data, s);
    process.trainer->Resume(LoadCheckpoint(*process.runtime, folder.path("stopped")));
    Log log;
    CHECK(process.trainer->Run(log).steps == 15);
  };
  folder.Write("stopped", stopped);
  resume(spec);
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
  RunSpec on_one = FakeGpuSpec();
  on_one.average_decay = spec.average_decay;
  on_one.ctx = kGpu;
  resume(on_one);
}

// Bit-exact on processors with FMA.
TEST_CASE("images are copied as bytes and normalized on the GPU: the bits of float32 batches") {
  const TempDir data;
  WriteImages(data);
  RunSpec spec = FakeGpuSpec();
  spec.images = true;
  spec.data_threads = 2;
  std::vector<RunSpec> specs(3, spec);
  specs[1].grad_accum = 2;
  specs[1].average_decay = 0.9;
  specs[2].engine = "naive";
  for (RunSpec& s : specs) {
    const Outcome on_cpu = RunWhole(data, s);
    RunSpec on_gpu = s, as_numbers = s, on_two = OnTwoGpus(s), by_two_workers = s;
    on_gpu.ctx = as_numbers.ctx = kGpu;
    as_numbers.as_pixels = false;
    by_two_workers.workers = 2;
    CHECK(Process(data, on_gpu).train->provide_data()[0].pixels);
    CHECK_FALSE(Process(data, as_numbers).train->provide_data()[0].pixels);
    CHECK_FALSE(Process(data, s).train->provide_data()[0].pixels);
    const Outcome pixels = RunWhole(data, on_gpu);
    CHECK(pixels.bits == on_cpu.bits);
    CHECK(pixels.last == RunWhole(data, as_numbers).last);  // the checkpoint does not depend on it
    REQUIRE(pixels.epochs.size() == on_cpu.epochs.size());
    for (size_t e = 0; e < on_cpu.epochs.size(); ++e)
      CheckSameEpoch(pixels.epochs[e], on_cpu.epochs[e]);
    CHECK(RunWhole(data, on_two).bits == RunWhole(data, by_two_workers).bits);
  }
}

TEST_CASE("pixels before a convolution that wants channels last, or bfloat16") {
  const TempDir data;
  WriteImages(data);
  RunSpec channels_last = FakeGpuSpec();
  channels_last.images = true;
  channels_last.ctx = kGpu;
  RunSpec narrow = channels_last;
  channels_last.make_runtime = [](const RunSpec&) { return NewChannelsLastRuntime(); };
  narrow.amp = DType::kBfloat16;
  for (const RunSpec& pixels : {channels_last, narrow}) {
    RunSpec numbers = pixels;
    numbers.as_pixels = false;
    CHECK(RunWhole(data, pixels).last == RunWhole(data, numbers).last);
  }
}

TEST_CASE("the operator and the pipeline make the same numbers of pixels") {
  const auto runtime = NewFakeGpuRuntime();
  std::vector<uint8_t> bytes(256 * 3);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(i / 3);
  const std::vector<PixelNormalization> chains = {
      {}, {{0.5}, {0.25}}, {{0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}}, {{0}, {0.3081}}};
  for (const PixelNormalization& chain : chains) {
    const DataDesc desc{"data", {2, 3, 16, 8}, DType::kFloat32, chain};
    NDArray pixels(*runtime, desc.array_shape(), desc.array_type());
    pixels.CopyFromHost(bytes.data(), static_cast<int64_t>(bytes.size()));
    const Kwargs kwargs = {{"mean", params::Print(chain.mean)}, {"std", params::Print(chain.std)}};
    for (const Context ctx : {Context::cpu(), kGpu}) {
      const NDArray there = pixels.Copy(ctx);
      CHECK(Invoke("image_normalize", {&there, 1}, kwargs)[0].ToVector() ==
            InputValues(desc, pixels));
    }
  }
}

// Blocks a stream of a fake GPU until released, or until a timeout.
class Gate {
 public:
  Gate(Runtime& runtime, Context ctx) {
    runtime.engine().PushSync(
        [state = state_](RunContext run) {
          static_cast<FakeStream*>(run.stream)->Launch([state] {
            std::unique_lock lock(state->mutex);
            state->let_go = state->changed.wait_for(lock, std::chrono::seconds(20),
                                                    [&] { return state->open; });
          });
        },
        {}, {}, {.ctx = ctx, .name = "gate"});
  }
  void Open() {
    const std::lock_guard lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }
  // After a wait for the stream.
  bool was_opened() const { return state_->let_go; }

 private:
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false, let_go = false;
  };
  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

TEST_CASE("the copy of a batch is made while the GPU works on the one before") {
  const TempDir data;
  WriteImages(data);
  RunSpec spec = FakeGpuSpec();
  spec.images = true;
  for (const bool two : {false, true}) {
    for (const bool as_pixels : {false, true}) {
      spec.as_pixels = as_pixels;
      spec.ctx = kGpu;
      Process process(data, two ? OnTwoGpus(spec) : spec);
      DataBatch batches[2];
      for (DataBatch& batch : batches) REQUIRE(process.train->Next(&batch));
      process.runtime->engine().WaitForAll();  // memory freed behind the gate would be waited for
      Gate gate(*process.runtime, kGpu);
      for (const DataBatch& batch : batches) process.trainer->Step(batch);
      // Both could be overwritten: the copies are done, and no step of the first GPU has started.
      for (const DataBatch& batch : batches) batch.data[0].WaitToWrite();
      gate.Open();
      process.runtime->engine().WaitForAll();
      CHECK(gate.was_opened());
    }
  }
}

TEST_CASE("a GPU that fails ends the run on both with its message") {
  const TempDir data;
  WriteTable(data);
  for (const Context broken : {Context::gpu(0), Context::gpu(1)}) {
    Process process(data, OnTwoGpus(FakeGpuSpec()));
    class BreakAfter final : public TrainListener {
     public:
      BreakAfter(engine::Engine& engine, Context broken) : engine_(engine), broken_(broken) {}
      void OnStep(const StepEvent& e) override {
        if (e.step != 3) return;
        engine_.PushSync(
            [](RunContext ctx) { static_cast<FakeStream*>(ctx.stream)->Break("fell off the bus"); },
            {}, {}, {.ctx = broken_, .name = "break"});
      }

     private:
      engine::Engine& engine_;
      const Context broken_;
    } listener(process.runtime->engine(), broken);
    CHECK_THROWS_WITH_AS(process.trainer->Run(listener), doctest::Contains("fell off the bus"),
                         Error);
  }
}

TEST_CASE("a batch that cannot be divided among GPUs is rejected before the start") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = OnTwoGpus(FakeGpuSpec());
  spec.batch = 7;
  CHECK_THROWS_WITH(Process(data, spec), "a batch of 7 cannot be divided among 2 workers");
}

}  // namespace
}  // namespace mxtrain::test
