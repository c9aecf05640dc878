// SPDX-License-Identifier: Apache-2.0
// Whole runs: the same seed gives the same bits with any engine and number of pipeline threads;
// reports, errors and results.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "tests/support/allocation_count.h"
#include "tests/support/error_message.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

TEST_CASE("one seed, one result: engines and data threads change no bit; another seed does") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  const Outcome first = RunWhole(data, spec);
  CHECK(first.epochs.size() == 3);
  CHECK(first.epochs.back().train[0].second < first.epochs.front().train[0].second);  // it learns
  for (const std::string engine : {"naive", "threaded"}) {
    for (int threads : {1, 2}) {
      CAPTURE(engine);
      CAPTURE(threads);
      spec.engine = engine;
      spec.data_threads = threads;
      const Outcome other = RunWhole(data, spec);
      CHECK(other.last == first.last);
      for (size_t e = 0; e < first.epochs.size(); ++e)
        CheckSameEpoch(other.epochs[e], first.epochs[e]);
    }
  }
  spec.seed = 6;
  CHECK(RunWhole(data, spec).bits != first.bits);
}

// Three epochs on 44 examples: after the same number of steps the losses are similar, and both nets
// have learned the three classes.
TEST_CASE(
    "training in bfloat16 learns what training in float32 learns, and resumes to the same bits") {
  if (!WhyNoBfloat16().empty()) return;
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  // Residual: convolutions, batch norm, sums, pooling.
  spec.symbol = SmallNets(TestRegistry())[1].losses;
  spec.epochs = 6;
  const Outcome wide = RunWhole(data, spec);
  spec.amp = DType::kBfloat16;
  const Outcome narrow = RunWhole(data, spec);
  CHECK(narrow.bits != wide.bits);
  REQUIRE(narrow.epochs.size() == wide.epochs.size());
  const auto value = [](const std::vector<std::pair<std::string, double>>& values,
                        const std::string& name) {
    for (const auto& [key, found] : values) {
      if (key == name) return found;
    }
    FAIL("no " << name);
    return 0.0;
  };
  CHECK(value(wide.epochs.back().val, "accuracy") > 0.9);
  CHECK(value(narrow.epochs.back().val, "accuracy") > 0.9);
  CHECK(std::abs(value(narrow.epochs.back().val, "cross_entropy") -
                 value(wide.epochs.back().val, "cross_entropy")) < 0.05);

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
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == narrow.last);
}

// Each gradient is a sum of the halves' sums instead of one sum: only float32 rounding, through 15
// steps.
TEST_CASE("two logical workers on half batches do what one does on the whole batch") {
  const TempDir data;
  WriteTable(data);
  for (const std::optional<double>& clip : {std::optional<double>(), std::optional<double>(0.5)}) {
    RunSpec spec;
    spec.symbol = QuietNet();
    spec.clip_norm = clip;
    const Outcome one = RunWhole(data, spec);
    spec.workers = 2;
    const Outcome two = RunWhole(data, spec);
    const double worst = LargestDifference(one.bits, two.bits);
    MESSAGE("largest difference: " << worst);
    CHECK(worst < 2e-5);
    for (size_t e = 0; e < one.epochs.size(); ++e) {
      for (size_t k = 0; k < one.epochs[e].train.size(); ++k) {
        CHECK(two.epochs[e].train[k].second ==
              doctest::Approx(one.epochs[e].train[k].second).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("progress is reported even if epochs are shorter than the time between two reports") {
  struct Slow final : TrainListener {
    void OnStep(const StepEvent& e) override {
      ++reports;
      CHECK(e.images_per_second > 0);
      CHECK(e.wait_share <= 1);
    }
    void OnEpoch(const EpochEvent&) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(60));
    }
    int reports = 0;
  };
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.report_seconds = 0.05;  // passes at the end of each epoch
  Process process(data, spec);
  Slow listener;
  process.trainer->Run(listener);
  CHECK(listener.reports >= 2);
}

TEST_CASE("reports by steps come at fixed intervals, whatever the time") {
  struct Steps final : TrainListener {
    void OnStep(const StepEvent& e) override { seen.push_back(e.step); }
    std::vector<int64_t> seen;
  };
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.report_steps = 3;
  spec.report_seconds = 1e6;
  spec.max_steps = 10;
  Process process(data, spec);
  Steps listener;
  process.trainer->Run(listener);
  CHECK(listener.seen == std::vector<int64_t>{3, 6, 9});
}

TEST_CASE("a loss that is not finite ends the run and names the step") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.optimizer = {"sgd", {{"lr", "1e30"}, {"weight_decay", "1e30"}}};  // beyond float32
  Process process(data, spec);
  Log log;
  try {
    process.trainer->Run(log);
    FAIL("the run went on");
  } catch (const Error& e) {
    CHECK(e.kind() == ErrorKind::kDiverged);
    CHECK(std::string(e.what()).find("'softmax'") != std::string::npos);
  }
}

TEST_CASE("what a listener throws ends the run, with steps in flight") {
  struct Refuses : TrainListener {
    void OnSave(const SaveEvent&) override { Throw(ErrorKind::kFileSystem, "the disk is full"); }
  };
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Refuses listener;
  CHECK_THROWS_WITH(process.trainer->Run(listener), "the disk is full");
  // A step that nobody waits for: the trainer's end does.
  DataBatch batch;
  process.train->Reset(0);
  REQUIRE(process.train->Next(&batch));
  process.trainer->Step(batch);
  process.trainer.reset();
}

// A net with kernels of this library only, since others may allocate.
Symbol OwnNet() {
  const auto layer = [](const char* op, const Kwargs& kwargs, const Symbol& input) {
    return Symbol::Create(TestRegistry(), op, "", kwargs, std::vector{input});
  };
  Symbol x = layer("Convolution", {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "4"}},
                   Symbol::Variable("data"));
  x = layer("Activation", {{"act_type", "relu"}}, layer("BatchNorm", {}, x));
  x = layer("Convolution", {{"kernel", "(6, 6)"}, {"num_filter", "3"}},
            layer("Dropout", {{"p", "0.1"}}, x));
  return Symbol::Create(TestRegistry(), "SoftmaxOutput", "softmax", {},
                        std::vector{layer("Flatten", {}, x)});
}

// Pools grow occasionally, when more work is in flight than ever before, especially on a busy
// machine; nothing is allocated at every step, nor at every second one.
TEST_CASE("no step after the first ones allocates") {
  constexpr int64_t kGrowth = 300;
  const TempDir data;
  WriteTable(data);
  const auto allocations = [&](const RunSpec& spec) {
    Process process(data, spec);
    DataBatch batches[2];
    process.train->Reset(0);
    for (DataBatch& batch : batches) REQUIRE(process.train->Next(&batch));
    int64_t step = 0;
    const auto run_to = [&](int64_t last) {
      for (; step < last; ++step) process.trainer->Step(batches[step % 2]);
      process.runtime->engine().WaitForAll();
    };
    run_to(10);
    const AllocationCount count;
    run_to(1000);
    return count.value();
  };
  RunSpec spec;
  spec.batch = 16;
  spec.symbol = OwnNet();
  spec.epochs = 1000;
  for (const std::string optimizer : {"sgd", "nag", "adam"}) {
    CAPTURE(optimizer);
    spec.optimizer = {optimizer, {{"lr", "0.001"}}};
    CHECK(allocations(spec) < kGrowth);
  }
  spec.clip_norm = 0.5;
  CHECK(allocations(spec) < kGrowth);
  spec.average_decay = 0.99;
  spec.grad_accum = 2;
  CHECK(allocations(spec) < kGrowth);
}

TEST_CASE("a parameter that MXNet's files lack is no label") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  Process process(data, spec);
  Model model;
  model.symbol = spec.symbol;
  model.info.inputs.push_back({"data", TShape(), DType::kFloat32});
  std::vector<std::string> parameters;
  for (const std::string& name : spec.symbol.ListArguments()) {
    if (name == "data" || name == "softmax_label") continue;
    parameters.push_back(name);
    model.args[name] = NDArray(*process.runtime, TShape{1});
    model.args[name].Fill(0);
  }
  const std::string where = folder.path("exported") + "@1";
  SaveMxnetModel(where, model);
  const ModelInfo info = LoadModel(*process.runtime, where).info;
  REQUIRE(info.labels.size() == 1);
  CHECK(info.labels[0].name == "softmax_label");
  for (const std::string& missing : parameters) {
    Model damaged = model;
    damaged.args.erase(missing);
    SaveMxnetModel(where, damaged);
    CHECK(MessageOf([&] {
            LoadModel(*process.runtime, where);
          }).find("0001.params: the parameter '" + missing + "' of the net is missing;") !=
          std::string::npos);
  }
}

TEST_CASE("a trained model predicts the same from its checkpoint and from MXNet's files") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  process.trainer->Run(log);
  const Model model = LoadModel(*process.runtime, folder.path());
  CHECK(model.file.ends_with("best"));
  SaveMxnetModel(folder.path("exported@1"), model);
  const Model exported = LoadModel(*process.runtime, folder.path("exported") + "@1");
  const auto predict = [&](const Model& m) {
    Evaluation evaluation(*process.runtime, m.symbol, *process.val, {{"accuracy", {}, "", ""}},
                          nullptr, Context::cpu());
    SetParameters(m, &evaluation.executor(), {});
    std::vector<float> predictions;
    const NamedValues values =
        evaluation.Run([&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
          const std::vector<float> rows = outputs[0].ToVector();
          predictions.insert(predictions.end(), rows.begin(),
                             rows.begin() + static_cast<std::ptrdiff_t>(batch.count * 3));
        });
    CHECK(predictions.size() == kExamples * 3);
    return std::make_pair(values, predictions);
  };
  const auto from_checkpoint = predict(model), from_export = predict(exported);
  CHECK(from_checkpoint == from_export);
  double best = 0;
  for (const EpochEvent& e : log.epochs) best = std::max(best, e.val[1].second);
  CHECK(from_checkpoint.first[1].second == best);
}

}  // namespace
}  // namespace mxtrain::test
