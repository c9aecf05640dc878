// SPDX-License-Identifier: Apache-2.0
// Training in float16 with loss scaling, on a fake GPU with the CPU's reference kernels.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/gpus.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

constexpr double kFirstScale = 8192;  // 2^16 / batch

RunSpec InFloat16(const Symbol& symbol, int64_t steps = 6) {
  RunSpec spec;
  spec.symbol = symbol;
  spec.make_runtime = [](const RunSpec&) { return NewChannelsLastRuntime(); };
  spec.ctx = kGpu;
  spec.amp = DType::kFloat16;
  spec.report_steps = 1;
  spec.save_every_steps = 1;
  spec.max_steps = steps;
  return spec;
}

RunSpec OnTwoGpusBy(RunSpec spec, const std::string& kvstore) {
  spec.devices = {Context::gpu(0), Context::gpu(1)};
  spec.kvstore = kvstore;
  spec.new_communicator = NewFakeCommunicator;
  return spec;
}

// Keeps the checkpoint of every step. Makes the gradients of the step behind `overflow_after`
// overflow, by an infinite scale.
class Watcher final : public TrainListener {
 public:
  Watcher(Process* process, std::string folder, int64_t overflow_after = -1)
      : process_(process), folder_(std::move(folder)), overflow_after_(overflow_after) {}

  void OnStep(const StepEvent& e) override {
    if (e.step == overflow_after_) NDArray(process_->trainer->executor().loss_scale()).Fill(1e9);
  }
  void OnSave(const SaveEvent& e) override {
    saved.insert_or_assign(
        e.step, LoadCheckpoint(*process_->runtime, CheckpointFolder(folder_).File("last")));
  }
  void OnEpoch(const EpochEvent& e) override { epochs.push_back(e); }
  void OnWarning(const std::string& text) override { warnings.push_back(text); }

  LossScaleState ScaleAfter(int64_t step) const { return saved.at(step).state.loss_scale.value(); }

  std::map<int64_t, Checkpoint> saved;
  std::vector<EpochEvent> epochs;
  std::vector<std::string> warnings;

 private:
  Process* process_;
  std::string folder_;
  int64_t overflow_after_;
};

struct Watched {
  std::string last;  // bytes of the checkpoint
  Bits bits;
  std::map<int64_t, Bits> bits_after;
  std::map<int64_t, LossScaleState> scale_after;
  std::vector<EpochEvent> epochs;
  std::vector<std::string> warnings;
};

Watched Run(const TempDir& data, RunSpec spec, int64_t overflow_after = -1) {
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Watcher watcher(&process, spec.folder, overflow_after);
  CHECK(process.trainer->Run(watcher).end == RunEnd::kComplete);
  Watched run;
  run.last = ReadFile(CheckpointFolder(spec.folder).File("last"));
  for (const auto& [step, checkpoint] : watcher.saved) {
    run.bits = run.bits_after[step] = BitsOf(checkpoint);
    if (checkpoint.state.loss_scale) run.scale_after[step] = *checkpoint.state.loss_scale;
  }
  run.epochs = watcher.epochs;
  run.warnings = watcher.warnings;
  return run;
}

double ValueOf(const NamedValues& values, const std::string& name) {
  for (const auto& [key, value] : values) {
    if (key == name) return value;
  }
  FAIL("no value " << name);
  return 0;
}

TEST_CASE("a net learns in float16 what it learns in float32") {
  const TempDir data;
  WriteTable(data);
  for (const bool noisy : {false, true}) {
    RunSpec spec = InFloat16(noisy ? NoisyNet() : QuietNet(), 30);
    spec.epochs = 6;
    spec.save_every_steps = 0;
    spec.lr_schedule = {"constant", {}};
    if (noisy) spec.optimizer = {"sgd", {{"lr", "0.002"}, {"momentum", "0.9"}}};
    const Watched narrow = Run(data, spec);
    spec.amp.reset();
    const Watched wide = Run(data, spec);
    CHECK(wide.scale_after.empty());
    CHECK(wide.epochs.back().loss_scale == 0);
    for (const char* measure : {"accuracy", "cross_entropy"}) {
      CHECK(ValueOf(narrow.epochs.back().val, measure) ==
            doctest::Approx(ValueOf(wide.epochs.back().val, measure)).epsilon(0.05));
    }
    CHECK(narrow.bits != wide.bits);
    if (noisy) {
      CHECK(narrow.epochs.back().steps_skipped > 0);  // until the scale has adapted
      CHECK(narrow.epochs.back().loss_scale < kFirstScale);
    } else {
      CHECK(narrow.warnings.empty());
      CHECK(narrow.epochs.back().loss_scale == kFirstScale);
      CHECK(LargestDifference(narrow.bits, wide.bits) < 0.001);
    }
  }
}

TEST_CASE(
    "a step whose gradients overflow changes neither weights nor states, and halves the scale") {
  const TempDir data;
  WriteTable(data);
  std::vector<RunSpec> specs(4, InFloat16(QuietNet()));
  specs[1].optimizer = {"adam", {{"lr", "0.01"}}};
  specs[1].clip_norm = 0.5;
  specs[2].grad_accum = 2;
  specs[2].workers = 2;
  specs[3].optimizer = {"lamb", {{"lr", "0.01"}}};
  specs.push_back(OnTwoGpusBy(specs[0], "device"));
  specs.push_back(OnTwoGpusBy(specs[0], "local"));
  for (const RunSpec& spec : specs) {
    const Watched run = Run(data, spec, 3);
    CHECK(run.scale_after.at(3) == LossScaleState{kFirstScale, 3, 0, 0});
    CHECK(run.bits_after.at(4) == run.bits_after.at(3));
    CHECK(run.scale_after.at(4) == LossScaleState{kFirstScale / 2, 0, 1, 0});
    CHECK(run.bits_after.at(5) != run.bits_after.at(4));
    CHECK(run.scale_after.at(5) == LossScaleState{kFirstScale / 2, 1, 1, 0});
    CHECK(run.warnings ==
          std::vector<std::string>{"step 4: gradients overflowed float16; 1 step was skipped so "
                                   "far, the loss is scaled by 4096 from now on"});
    CHECK(run.epochs.back().loss_scale == kFirstScale / 2);
    CHECK(run.epochs.back().steps_skipped == 1);
  }
}

// The scale is a power of two, and no value here is small enough to lose a bit.
TEST_CASE("clipping sees gradients without their scale") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = InFloat16(QuietNet());
  const Watched plain = Run(data, spec);
  spec.clip_norm = 1e6;
  CHECK(Run(data, spec).bits == plain.bits);
  spec.clip_norm = 0.05;
  const Watched narrow = Run(data, spec);
  spec.amp.reset();
  CHECK(LargestDifference(narrow.bits, Run(data, spec).bits) < 0.003);
  CHECK(LargestDifference(narrow.bits, plain.bits) > 0.01);
}

TEST_CASE("two GPUs in float16 give the bits of two workers on one, whichever store sums") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = InFloat16(NoisyNet());
  spec.clip_norm = 0.5;
  RunSpec on_one = spec;
  on_one.workers = 2;
  const Watched expected = Run(data, on_one, 3);
  for (const char* kvstore : {"device", "local"})
    CHECK(Run(data, OnTwoGpusBy(spec, kvstore), 3).bits == expected.bits);
}

// Resumed from a checkpoint with another scale.
struct Resumed {
  Resumed(const TempDir& data, const LossScaleState& scale, int64_t overflow_after = -1) {
    RunSpec spec = InFloat16(QuietNet(), 10);
    spec.folder = folder.path("checkpoints");
    process.emplace(data, spec);
    Checkpoint begin = [&] {
      RunSpec first = spec;
      first.folder = folder.path("first");
      first.max_steps = 5;
      first.save_every_steps = 0;
      Process other(data, first);
      Watcher all(&other, first.folder);
      other.trainer->Run(all);
      return LoadCheckpoint(*process->runtime, CheckpointFolder(first.folder).File("last"));
    }();
    CHECK(begin.state.step == 5);
    begin.state.loss_scale = scale;
    process->trainer->Resume(begin);
    watcher.emplace(&*process, spec.folder, overflow_after);
  }

  TempDir folder;
  std::optional<Process> process;
  std::optional<Watcher> watcher;
};

TEST_CASE("after 2000 good steps the scale is doubled, up to 2^24") {
  const TempDir data;
  WriteTable(data);
  Resumed run(data, {256, 1997, 3, 0});
  run.process->trainer->Run(*run.watcher);
  CHECK(run.watcher->ScaleAfter(7) == LossScaleState{256, 1999, 3, 0});
  CHECK(run.watcher->ScaleAfter(8) == LossScaleState{512, 0, 3, 0});
  CHECK(run.watcher->ScaleAfter(9) == LossScaleState{512, 1, 3, 0});
  CHECK(GetValues(run.process->trainer->executor().loss_scale()) == std::vector<double>{512});
}

TEST_CASE("an overflow at the lowest scale ends the run") {
  const TempDir data;
  WriteTable(data);
  Resumed run(data, {1, 7, 20, 0}, 7);
  CHECK_THROWS_WITH_AS(run.process->trainer->Run(*run.watcher),
                       "gradients overflow in float16 at step 8 or shortly before, although the "
                       "loss scale is at its minimum; lower the learning rate, "
                       "clip gradients, or train with train.amp: bf16",
                       DivergedError);
}

TEST_CASE("a run in float16 is resumed to the bits of an unbroken one, with its scale") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = InFloat16(NoisyNet(), 10);
  spec.average_decay = 0.9;
  const Watched whole = Run(data, spec, 3);
  spec.folder = folder.path("checkpoints");
  {
    Process process(data, spec);
    class Stopped final : public TrainListener {
     public:
      Stopped(Watcher* watcher, std::atomic<int>* stop) : watcher_(watcher), stop_(stop) {}
      void OnStep(const StepEvent& e) override {
        watcher_->OnStep(e);
        if (e.step == 7) *stop_ = 1;
      }

     private:
      Watcher* watcher_;
      std::atomic<int>* stop_;
    };
    std::atomic<int> stop = 0;
    Watcher watcher(&process, spec.folder, 3);
    Stopped listener(&watcher, &stop);
    CHECK(process.trainer->Run(listener, &stop).end == RunEnd::kStopped);
  }
  Process process(data, spec);
  std::vector<std::string> warnings;
  const Checkpoint stopped = CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings);
  REQUIRE(stopped.state.loss_scale.has_value());
  CHECK(stopped.state.loss_scale->scale < kFirstScale);
  CHECK(stopped.state.loss_scale->steps_skipped > 0);
  CHECK(stopped.state.loss_scale->good_steps > 0);
  process.trainer->Resume(stopped);
  Log log;
  process.trainer->Run(log);
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
}

}  // namespace
}  // namespace mxtrain::test
