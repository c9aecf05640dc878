// Whole runs: the same seed gives the same bits whatever the engine and the threads of the pipeline; a run that is broken off and resumed
// ends in the bits of an unbroken one.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/base/file.h"
#include "mxtrain/device/cpu/onednn/bfloat16.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/source_factory.h"
#include "mxtrain/train/model.h"
#include "mxtrain/train/trainer.h"
#include "tests/support/allocation_count.h"
#include "tests/support/operator_case.h"
#include "tests/support/small_nets.h"
#include "tests/support/temp_dir.h"

namespace mxtrain::test {
namespace {

constexpr int kExamples = 44, kBatch = 8, kSide = 6;  // 5 batches to an epoch, and a remainder

// A table of pictures in three classes that differ in brightness.
void WriteTable(const TempDir& folder) {
  std::string text = "class";
  for (int i = 0; i < kSide * kSide; ++i) text += format(",p{}", i);
  text += "\n";
  for (int n = 0; n < kExamples; ++n) {
    const int label = n % 3;
    text += std::to_string(label);
    for (double v : ValuesFor(format("example {}", n), kSide * kSide)) text += format(",{:.4f}", v + label - 1);
    text += "\n";
  }
  folder.Write("table.csv", text);
}

struct RunSpec {
  std::string engine = "threaded";
  int data_threads = 1;
  Symbol symbol;
  int workers = 1;
  int64_t epochs = 3;
  NamedSpec optimizer{"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}, {"weight_decay", "0.001"}}};
  std::optional<double> clip_norm;
  std::optional<DType> amp;
  std::string folder;
  uint64_t seed = 5;
  int64_t batch = kBatch, max_steps = 0, save_every_steps = 0, grad_accum = 1;
  NamedSpec lr_schedule{"multistep", {{"milestones", "[7, 12]"}, {"unit", "steps"}, {"factor", "0.5"}}};
  LrPatterns lr_mult;
  std::optional<double> average_decay;
  EarlyStop early_stop;
  std::vector<std::string> best_metrics;
  double time_limit_seconds = 0;
  double report_seconds = 0;
};

class Log final : public TrainListener {
 public:
  void OnEpoch(const EpochEvent& e) override { epochs.push_back(e); }
  void OnSave(const SaveEvent&) override { ++saves; }
  std::vector<EpochEvent> epochs;
  int saves = 0;
};

// Ends a run after so many steps.
class StopAfter final : public TrainListener {
 public:
  StopAfter(int64_t step, std::atomic<int>* stop) : step_(step), stop_(stop) {}
  void OnStep(const StepEvent& e) override {
    if (e.step == step_) *stop_ = 1;
  }

 private:
  int64_t step_;
  std::atomic<int>* stop_;
};

// Everything of one process that trains.
struct Process {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<DataIter> train, val;
  std::unique_ptr<Trainer> trainer;

  Process(const TempDir& data, const RunSpec& spec) : runtime(NewRuntime(spec.engine, 2, spec.seed)) {
    train = Iter(data, spec, true);
    val = Iter(data, spec, false);
    TrainOptions options;
    options.symbol = spec.symbol;
    options.epochs = spec.epochs;
    options.optimizer = spec.optimizer;
    options.lr_schedule = spec.lr_schedule;
    options.lr_mult = spec.lr_mult;
    options.grad_accum = spec.grad_accum;
    options.average_decay = spec.average_decay;
    options.early_stop = spec.early_stop;
    options.best_metrics = spec.best_metrics;
    options.time_limit_seconds = spec.time_limit_seconds;
    options.metrics = {{"accuracy", {}, "", ""}, {"cross_entropy", {}, "", ""}};
    options.clip_norm = spec.clip_norm;
    options.amp = spec.amp;
    options.logical_workers = spec.workers;
    options.checkpoint_folder = spec.folder;
    options.report_seconds = spec.report_seconds;
    options.max_steps = spec.max_steps;
    options.save.every_steps = spec.save_every_steps;
    trainer = std::make_unique<Trainer>(*runtime, options, *train, val.get());
  }

  std::unique_ptr<DataIter> Iter(const TempDir& data, const RunSpec& spec, bool training) {
    std::shared_ptr<const io::Source> source = io::MakeSource(
        "csv", {{"path", data.path("table.csv")}, {"label_columns", "class"}, {"data_shape", format("(1, {}, {})", kSide, kSide)}});
    io::PipelineParam param;
    param.Init({{"batch_size", std::to_string(spec.batch)},
                {"mode", training ? "training" : "evaluation"},
                {"shuffle", training ? "True" : "False"},
                {"seed", std::to_string(spec.seed)},
                {"workers", std::to_string(spec.data_threads)},
                {"label_name", "softmax_label"}},
               "test");
    return io::NewPipeline(*runtime, source, {}, param);
  }
};

using Bits = std::map<std::string, std::vector<float>>;

// The arrays of a checkpoint.
Bits BitsOf(const Checkpoint& c) {
  Bits bits;
  for (const auto* arrays : {&c.args, &c.auxs, &c.optimizer}) {
    for (const auto& [name, array] : *arrays) bits[name] = array.ToVector();
  }
  for (const auto& [name, array] : c.averages) bits["average of " + name] = array.ToVector();
  return bits;
}

// Dropout and BatchNorm.
Symbol NoisyNet() {
  return DropoutNet(TestRegistry()).losses;
}

Symbol QuietNet() {
  const OperatorRegistry& registry = TestRegistry();
  const std::vector data{Symbol::Variable("data")};
  const std::vector hidden{Symbol::Create(registry, "FullyConnected", "fc1", {{"num_hidden", "16"}}, data)};
  const std::vector bent{Symbol::Create(registry, "Activation", "act1", {{"act_type", "tanh"}}, hidden)};
  const std::vector scores{Symbol::Create(registry, "FullyConnected", "fc2", {{"num_hidden", "3"}}, bent)};
  return Symbol::Create(registry, "SoftmaxOutput", "softmax", {}, scores);
}

struct Outcome {
  std::string last;  // bytes of the checkpoint
  std::vector<EpochEvent> epochs;
  Bits bits;
};

Outcome RunWhole(const TempDir& data, RunSpec spec) {
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  const TrainResult result = process.trainer->Run(log);
  CHECK(result.epochs == spec.epochs);
  CHECK(result.end == RunEnd::kComplete);
  const CheckpointFolder checkpoints(spec.folder);
  return {ReadFile(checkpoints.File("last")), log.epochs, BitsOf(LoadCheckpoint(*process.runtime, checkpoints.File("last")))};
}

void CheckSameEpoch(const EpochEvent& a, const EpochEvent& b) {
  CHECK(a.epoch == b.epoch);
  CHECK(a.step == b.step);
  CHECK(a.lr == b.lr);
  CHECK(a.train == b.train);
  CHECK(a.val == b.val);
  CHECK(a.best == b.best);
}

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
      for (size_t e = 0; e < first.epochs.size(); ++e) CheckSameEpoch(other.epochs[e], first.epochs[e]);
    }
  }
  spec.seed = 6;
  CHECK(RunWhole(data, spec).bits != first.bits);
}

// Stops the run after each of these steps, resumes it in a new process, and compares with the run that nothing broke.
void CheckResumes(const TempDir& data, RunSpec spec, const std::vector<int64_t>& steps) {
  const Outcome whole = RunWhole(data, spec);
  for (int64_t step : steps) {
    CAPTURE(step);
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    {
      Process process(data, spec);
      std::atomic<int> stop = 0;
      StopAfter listener(step, &stop);
      const TrainResult result = process.trainer->Run(listener, &stop);
      CHECK(result.end == RunEnd::kStopped);
      CHECK(result.steps == step);
    }
    Process process(data, spec);
    std::vector<std::string> warnings;
    const Checkpoint checkpoint = CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings);
    CHECK(warnings.empty());
    CHECK(checkpoint.state.step == step);
    process.trainer->Resume(checkpoint);
    Log log;
    process.trainer->Run(log);
    CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
    REQUIRE(!log.epochs.empty());
    const size_t missed = whole.epochs.size() - log.epochs.size();
    for (size_t e = 0; e < log.epochs.size(); ++e) CheckSameEpoch(log.epochs[e], whole.epochs[missed + e]);
  }
}

TEST_CASE("a run that is stopped anywhere and resumed ends in the bytes of an unbroken one") {
  const TempDir data;
  WriteTable(data);
  for (const NamedSpec& optimizer : {NamedSpec{"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}}}, NamedSpec{"adam", {{"lr", "0.01"}}}}) {
    CAPTURE(optimizer.name);
    RunSpec spec;
    spec.symbol = NoisyNet();
    spec.optimizer = optimizer;
    CheckResumes(data, spec, {1, 5, 8, 13, 15});  // first, at an epoch's end, after a milestone, after the second, the last
  }
}

TEST_CASE("averages, steps of several batches and the state of a plateau come through a stop") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.epochs = 5;
  spec.grad_accum = 2;  // 2 steps to an epoch
  spec.average_decay = 0.9;
  spec.best_metrics = {"cross_entropy", "accuracy", "loss"};
  spec.early_stop = {10, 0};
  spec.lr_schedule = {"plateau", {{"patience", "1"}, {"min_delta", "0.5"}, {"factor", "0.5"}}};
  CheckResumes(data, spec, {1, 4, 7, 10});
}

// Without batch norm and random draws a step of N batches is one of a batch N times as large: in rounding alone they differ.
TEST_CASE("gradients summed over batches are those of one large batch") {
  const TempDir data;
  WriteTable(data);
  for (const int workers : {1, 2}) {
    CAPTURE(workers);
    RunSpec large, small;
    large.symbol = small.symbol = QuietNet();
    large.workers = small.workers = workers;
    large.clip_norm = small.clip_norm = 0.5;
    large.batch = 12;
    small.batch = 4;
    small.grad_accum = 3;
    const Outcome whole = RunWhole(data, large), summed = RunWhole(data, small);
    REQUIRE(whole.epochs.size() == summed.epochs.size());
    for (size_t e = 0; e < whole.epochs.size(); ++e) {
      CHECK(summed.epochs[e].step == whole.epochs[e].step);
      CHECK(summed.epochs[e].lr == whole.epochs[e].lr);
      CHECK(summed.epochs[e].val[0].second == doctest::Approx(whole.epochs[e].val[0].second).epsilon(1e-5));
    }
    for (const auto& [name, values] : whole.bits) {
      for (size_t i = 0; i < values.size(); ++i) CHECK(summed.bits.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-4));
    }
  }
}

// The formula, in double, from the weights that each step's checkpoint holds.
TEST_CASE("averages follow their formula, and are what evaluation and a model see") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.epochs = 1;
  spec.average_decay = 0.2;
  spec.save_every_steps = 1;
  spec.folder = folder.path("checkpoints");
  struct Follow : TrainListener {
    void OnSave(const SaveEvent& e) override {
      const Checkpoint c = LoadCheckpoint(*runtime, e.file);
      if (e.step == seen) return;  // the save at the end
      seen = e.step;
      const double t = static_cast<double>(e.step - 1), d = std::min(0.2, t / (t + 9));
      std::map<std::string, NDArray> values = c.args;
      values.insert(c.auxs.begin(), c.auxs.end());
      for (const auto& [name, average] : c.averages) {
        const std::vector<float> now = values.at(name).ToVector(), held = average.ToVector();
        std::vector<double>& wanted = averages[name];
        wanted.resize(now.size());
        for (size_t i = 0; i < now.size(); ++i) {
          wanted[i] = d * wanted[i] + (1 - d) * static_cast<double>(now[i]);
          CHECK(static_cast<double>(held[i]) == doctest::Approx(wanted[i]).epsilon(1e-5));
        }
      }
    }
    Runtime* runtime = nullptr;
    int64_t seen = 0;
    std::map<std::string, std::vector<double>> averages;
  };
  Process process(data, spec);
  Follow follow;
  follow.runtime = process.runtime.get();
  process.trainer->Run(follow);
  CHECK(follow.seen == 5);
  const Checkpoint last = LoadCheckpoint(*process.runtime, spec.folder + "/last");
  CHECK(last.averages.size() == last.args.size() + last.auxs.size());
  const Model model = LoadModel(*process.runtime, folder.path());
  for (const auto& [name, average] : last.averages) {
    CHECK((model.args.contains(name) ? model.args : model.auxs).at(name).ToVector() == average.ToVector());
  }
  Evaluation evaluation(*process.runtime, model.symbol, *process.val, {{"accuracy", {}, "", ""}}, nullptr, Context::cpu());
  SetParameters(model, &evaluation.executor(), {});
  CHECK(evaluation.Run()[1].second == last.state.best[0].value);
  // The executor holds the weights again.
  for (const auto& [name, array] : process.trainer->executor().args()) CHECK(array.ToVector() == last.args.at(name).ToVector());
}

TEST_CASE("patterns freeze parameters and multiply their rates; one that matches nothing is refused") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 1;
  spec.optimizer = {"sgd", {{"lr", "0.1"}}};
  Process start(data, spec);
  const auto first = [&](const std::string& name) { return start.trainer->executor().arg(name).ToVector(); };
  spec.max_steps = 1;
  const auto after_a_step = [&](const LrPatterns& patterns) {
    const TempDir folder;
    RunSpec one = spec;
    one.lr_mult = patterns;
    one.folder = folder.path("checkpoints");
    Process process(data, one);
    if (!patterns.empty()) CHECK(process.trainer->executor().grads().size() == 2);
    Log log;
    process.trainer->Run(log);
    return BitsOf(LoadCheckpoint(*process.runtime, one.folder + "/last"));
  };
  const Bits plain = after_a_step({}), patterned = after_a_step({{"fc2*", 3}, {"*", 5}, {"fc?_*", 3}, {"fc1*", 0}});
  CHECK(patterned.at("fc1_weight") == first("fc1_weight"));
  const std::vector<float> before = first("fc2_weight");
  for (size_t i = 0; i < before.size(); ++i) {
    const double once = static_cast<double>(plain.at("fc2_weight")[i]) - before[i], thrice = static_cast<double>(patterned.at("fc2_weight")[i]) - before[i];
    CHECK(std::abs(thrice - 3 * once) < 1e-6);
  }
  spec.lr_mult = {{"fcc1*", 1}};
  CHECK_THROWS_WITH(Process(data, spec), "'fcc1*' matches no parameter; did you mean 'fc1*'?");
  spec.lr_mult = {{"*", 0}};
  CHECK_THROWS_WITH(Process(data, spec), "every parameter is frozen: nothing would be trained");
}

TEST_CASE("a run ends early after epochs without improvement, stays ended, and is extended") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 20;
  spec.optimizer = {"sgd", {{"lr", "0"}}};  // nothing ever improves
  spec.early_stop = {3, 0};
  spec.folder = folder.path("checkpoints");
  {
    Process process(data, spec);
    Log log;
    const TrainResult result = process.trainer->Run(log);
    CHECK(result.end == RunEnd::kNoImprovement);
    CHECK(result.epochs == 4);  // the first is the best
    CHECK(process.trainer->finished());
  }
  Process process(data, spec);
  const Checkpoint last = LoadCheckpoint(*process.runtime, spec.folder + "/last");
  process.trainer->Resume(last);
  CHECK(process.trainer->finished());
  process.trainer->Resume(last, /*extend=*/true);
  Log log;
  CHECK(process.trainer->Run(log).epochs == 7);  // three more are no better either
}

TEST_CASE("each metric of `best` has its checkpoint") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 4;
  spec.best_metrics = {"accuracy", "cross_entropy"};
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  const TrainResult result = process.trainer->Run(log);
  REQUIRE(result.best.size() == 2);
  const auto least = std::min_element(log.epochs.begin(), log.epochs.end(), [](const auto& a, const auto& b) { return a.val[2].second < b.val[2].second; });
  CHECK(result.best[1].epoch == least->epoch);
  CHECK(result.best[1].value == least->val[2].second);
  CHECK(PeekState(spec.folder + "/best").epoch == result.best[0].epoch);
  CHECK(PeekState(spec.folder + "/best-cross_entropy").epoch == result.best[1].epoch);
  spec.best_metrics = {"acuracy"};
  CHECK_THROWS_WITH(Process(data, spec), doctest::Contains("did you mean 'accuracy'?"));
}

TEST_CASE("a time limit ends a run inside an epoch, evaluated and saved, and it goes on from there") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.time_limit_seconds = 1e-9;
  spec.folder = folder.path("checkpoints");
  Log none;
  {
    Process process(data, spec);
    CHECK(process.trainer->Run(none).end == RunEnd::kTimeLimit);
    CHECK(none.epochs.empty());
  }
  // A listener that lingers uses up the time after the first step.
  struct Lingers : TrainListener {
    void OnStep(const StepEvent&) override { std::this_thread::sleep_for(std::chrono::milliseconds(1100)); }
    void OnEpoch(const EpochEvent& e) override { val = e.val; }
    NamedValues val;
  };
  spec.time_limit_seconds = 1;
  Process process(data, spec);
  Lingers lingers;
  const TrainResult result = process.trainer->Run(lingers);
  CHECK(result.end == RunEnd::kTimeLimit);
  CHECK(result.steps < 15);
  CHECK(result.steps > 0);
  CHECK(lingers.val.size() == 3);
  CHECK_FALSE(process.trainer->finished());
  spec.time_limit_seconds = 0;
  Process second(data, spec);
  second.trainer->Resume(LoadCheckpoint(*second.runtime, spec.folder + "/last"));
  const TrainResult rest = second.trainer->Run(none);
  CHECK(rest.end == RunEnd::kComplete);
  CHECK(rest.steps == 15);
}

TEST_CASE("a run that died between the save of its last step and its end is ended when it is resumed") {
  struct Dies : TrainListener {
    explicit Dies(int64_t step) : step(step) {}
    void OnSave(const SaveEvent& e) override {
      if (e.step == step) Throw(ErrorKind::kFileSystem, "dead");
    }
    int64_t step;
  };
  const TempDir data;
  WriteTable(data);
  for (int64_t steps : {13, 15}) {  // inside the third epoch, and at its end
    CAPTURE(steps);
    RunSpec spec;
    spec.symbol = NoisyNet();
    spec.max_steps = steps;
    spec.save_every_steps = 1;
    const TempDir unbroken, killed;
    spec.folder = unbroken.path("checkpoints");
    Log whole;
    Process(data, spec).trainer->Run(whole);
    spec.folder = killed.path("checkpoints");
    Dies dies(steps);
    CHECK_THROWS_WITH(Process(data, spec).trainer->Run(dies), "dead");
    Process process(data, spec);
    process.trainer->Resume(LoadCheckpoint(*process.runtime, spec.folder + "/last"));
    CHECK_FALSE(process.trainer->finished());
    Log rest;
    process.trainer->Run(rest);
    REQUIRE(rest.epochs.size() == 1);
    CheckSameEpoch(rest.epochs[0], whole.epochs.back());
    for (const char* name : {"/checkpoints/last", "/checkpoints/best"}) CHECK(ReadFile(killed.path() + name) == ReadFile(unbroken.path() + name));
    process.trainer->Resume(LoadCheckpoint(*process.runtime, spec.folder + "/last"));
    CHECK(process.trainer->finished());
  }
}

// Three epochs on 44 examples: after the same number of steps the losses are alike, and both nets have learned the three classes.
TEST_CASE("training in bfloat16 learns what training in float32 learns, and resumes to the same bits") {
  if (!WhyNoBfloat16().empty()) return;
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = SmallNets(TestRegistry())[1].losses;  // residual: convolutions, batch norm, sums, pooling
  spec.epochs = 6;
  const Outcome wide = RunWhole(data, spec);
  spec.amp = DType::kBfloat16;
  const Outcome narrow = RunWhole(data, spec);
  CHECK(narrow.bits != wide.bits);
  REQUIRE(narrow.epochs.size() == wide.epochs.size());
  const auto value = [](const std::vector<std::pair<std::string, double>>& values, const std::string& name) {
    for (const auto& [key, value] : values) {
      if (key == name) return value;
    }
    FAIL("no " << name);
    return 0.0;
  };
  CHECK(value(wide.epochs.back().val, "accuracy") > 0.9);
  CHECK(value(narrow.epochs.back().val, "accuracy") > 0.9);
  CHECK(std::abs(value(narrow.epochs.back().val, "cross_entropy") - value(wide.epochs.back().val, "cross_entropy")) < 0.05);

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

// Each gradient is a sum of the halves' sums instead of one sum: rounding of float32 alone, through 15 steps.
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
    double worst = 0;
    for (const auto& [name, values] : one.bits) {
      const std::vector<float>& others = two.bits.at(name);
      REQUIRE(others.size() == values.size());
      for (size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(static_cast<double>(values[i]) - others[i]));
    }
    MESSAGE("largest difference: " << worst);
    CHECK(worst < 2e-5);
    for (size_t e = 0; e < one.epochs.size(); ++e) {
      for (size_t k = 0; k < one.epochs[e].train.size(); ++k) {
        CHECK(two.epochs[e].train[k].second == doctest::Approx(one.epochs[e].train[k].second).epsilon(1e-4));
      }
    }
  }
}

TEST_CASE("a resumed run must fit: another net, another seed and a batch that does not divide are refused") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.folder = folder.path("checkpoints");
  Process process(data, spec);
  Log log;
  process.trainer->Run(log);
  const Checkpoint checkpoint = LoadCheckpoint(*process.runtime, spec.folder + "/last");
  RunSpec other = spec;
  other.symbol = QuietNet();
  CHECK_THROWS_WITH(Process(data, other).trainer->Resume(checkpoint), doctest::Contains("belongs to another net"));
  other = spec;
  other.seed = 9;
  CHECK_THROWS_WITH(Process(data, other).trainer->Resume(checkpoint), doctest::Contains("seed 5"));
  other = spec;
  other.workers = 3;
  CHECK_THROWS_WITH(Process(data, other), doctest::Contains("does not divide among 3 workers"));
}

TEST_CASE("progress is reported where no epoch is as long as the time between two reports") {
  struct Slow final : TrainListener {
    void OnStep(const StepEvent& e) override {
      ++reports;
      CHECK(e.images_per_second > 0);
      CHECK(e.wait_share <= 1);
    }
    void OnEpoch(const EpochEvent&) override { std::this_thread::sleep_for(std::chrono::milliseconds(60)); }
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

// The learning rate of each step, and how far the run came.
struct Steps final : TrainListener {
  void OnStep(const StepEvent& e) override { rates.push_back(e.lr); }
  void OnEpoch(const EpochEvent& e) override { epochs = e.epoch; }
  std::vector<double> rates;
  int64_t epochs = 0;
};

TEST_CASE("a run resumed with another batch size goes on at the same example, for the epochs that are left") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 4;
  spec.max_steps = 7;  // 2 batches of 8 into the second epoch
  spec.folder = folder.path("checkpoints");
  const std::string last = spec.folder + "/last";
  Log log;
  Process(data, spec).trainer->Run(log);
  REQUIRE(PeekState(last).step_in_epoch == 2);

  spec.max_steps = 0;
  spec.folder = "";
  spec.batch = 4;
  Process second(data, spec);
  second.trainer->Resume(LoadCheckpoint(*second.runtime, last));
  Steps steps;
  const TrainResult result = second.trainer->Run(steps);
  CHECK(steps.rates.size() == (11 - 4) + 11 + 11);
  CHECK(result.epochs == 4);
  CHECK(result.steps == 7 + 29);
  CHECK(steps.rates[0] == 0.1 * 0.5 * 0.5);  // 15 batches of 4 lie behind: both milestones, 7 and 12

  spec.batch = 6;
  Process third(data, spec);
  CHECK_THROWS_WITH(third.trainer->Resume(LoadCheckpoint(*third.runtime, last)),
                    "the checkpoint stands inside epoch 2, 16 examples after its beginning, where no batch of 6 begins; resume with "
                    "data.batch_size=8, or from a checkpoint between two epochs (epoch-0001)");
}

TEST_CASE("a finished run is extended by its epochs, the schedule anew, and an extended one is resumed in its place") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  Steps steps;
  Process(data, spec).trainer->Run(steps);
  REQUIRE(steps.rates.size() == 10);
  {
    Process process(data, spec);
    const Checkpoint finished = LoadCheckpoint(*process.runtime, spec.folder + "/last");
    process.trainer->Resume(finished);
    CHECK(process.trainer->finished());
    process.trainer->Resume(finished, /*extend=*/true);
    CHECK_FALSE(process.trainer->finished());
    std::atomic<int> stop = 0;
    StopAfter listener(13, &stop);
    process.trainer->Run(listener, &stop);
  }
  Process process(data, spec);
  const Checkpoint stopped = LoadCheckpoint(*process.runtime, spec.folder + "/last");
  CHECK(stopped.state.step == 13);
  CHECK_THROWS_WITH(process.trainer->Resume(stopped, /*extend=*/true),
                    "the run is not finished: it has made 13 of 20 steps; resume it without extending");
  process.trainer->Resume(stopped);
  Steps rest;
  CHECK(process.trainer->Run(rest).epochs == 4);
  CHECK(rest.rates == std::vector<double>(steps.rates.begin() + 3, steps.rates.end()));
}

TEST_CASE("a run that was stopped after its last step, before its last epoch was ended, is extended by whole epochs") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  std::atomic<int> stop = 0;
  StopAfter listener(10, &stop);
  Process(data, spec).trainer->Run(listener, &stop);
  Process process(data, spec);
  process.trainer->Resume(LoadCheckpoint(*process.runtime, spec.folder + "/last"), /*extend=*/true);
  Log log;
  const TrainResult result = process.trainer->Run(log);
  CHECK(result.epochs == 4);
  CHECK(result.steps == 20);
  CHECK(log.epochs.size() == 3);  // the one that was left, and two more
}

TEST_CASE("a loss that is not finite ends the run and names the step") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.optimizer = {"sgd", {{"lr", "3e38"}}};
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

// A net whose kernels are all of this library, which vouches for its own allocations only.
Symbol OwnNet() {
  const auto layer = [](const char* op, const Kwargs& kwargs, const Symbol& input) {
    return Symbol::Create(TestRegistry(), op, "", kwargs, std::vector{input});
  };
  Symbol x = layer("Convolution", {{"kernel", "(3, 3)"}, {"pad", "(1, 1)"}, {"num_filter", "4"}}, Symbol::Variable("data"));
  x = layer("Activation", {{"act_type", "relu"}}, layer("BatchNorm", {}, x));
  x = layer("Convolution", {{"kernel", "(6, 6)"}, {"num_filter", "3"}}, layer("Dropout", {{"p", "0.1"}}, x));
  return Symbol::Create(TestRegistry(), "SoftmaxOutput", "softmax", {}, std::vector{layer("Flatten", {}, x)});
}

// Pools grow now and then, when more work is under way than ever before; nothing is allocated step by step.
TEST_CASE("no step after the first ones allocates") {
  constexpr int64_t kGrowth = 90;
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

TEST_CASE("a trained model predicts the same from its checkpoint and from the reference system's files") {
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
  SaveReferenceModel(folder.path("exported@1"), model.symbol, model.args, model.auxs);
  const Model exported = LoadModel(*process.runtime, folder.path("exported") + "@1");
  const auto predict = [&](const Model& m) {
    Evaluation evaluation(*process.runtime, m.symbol, *process.val, {{"accuracy", {}, "", ""}}, nullptr, Context::cpu());
    SetParameters(m, &evaluation.executor(), {});
    std::vector<float> predictions;
    const NamedValues values = evaluation.Run([&](const DataBatch& batch, const std::vector<NDArray>& outputs) {
      const std::vector<float> rows = outputs[0].ToVector();
      predictions.insert(predictions.end(), rows.begin(), rows.begin() + static_cast<std::ptrdiff_t>(batch.count * 3));
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
