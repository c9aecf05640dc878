// SPDX-License-Identifier: Apache-2.0
// Options of a run: steps of several batches, averages, patterns, early stopping, several best
// checkpoints.
#include <doctest/doctest.h>

#include <chrono>
#include <cmath>
#include <sstream>
#include <thread>

#include "mxtrain/base/error.h"
#include "mxtrain/train/class_weights.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// Without batch norm and random draws a step of N batches equals one of a batch N times as large,
// except for rounding.
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
      CHECK(summed.epochs[e].val[0].second ==
            doctest::Approx(whole.epochs[e].val[0].second).epsilon(1e-5));
    }
    for (const auto& [name, values] : whole.bits) {
      for (size_t i = 0; i < values.size(); ++i)
        CHECK(summed.bits.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-4));
    }
  }
}

// A class of weight 2 counts as if each of its examples appeared twice; gradients are means over
// actual examples.
TEST_CASE("weights of classes are copies of their examples") {
  const TempDir data, copies;
  WriteTable(data);
  std::string text;
  int64_t count = -1;  // without the header
  std::istringstream lines(ReadFile(data.path("table.csv")));
  for (std::string line; std::getline(lines, line);) {
    const int times = line.starts_with("1,") ? 2 : 1;
    count += times;
    for (int i = 0; i < times; ++i) text += line + "\n";
  }
  copies.Write("table.csv", text);
  RunSpec plain;
  plain.symbol = QuietNet();
  plain.batch = count;
  const auto sgd = [](double lr) {
    return NamedSpec{"sgd", {{"lr", params::Print(lr)}, {"momentum", "0.9"}}};
  };
  plain.optimizer = sgd(0.1 * static_cast<double>(count) / kExamples);
  const Outcome copied = RunWhole(copies, plain);
  RunSpec weighted = plain;
  const ClassifierHead head = FindClassifier(plain.symbol, {{"data", {1, 1, kSide, kSide}}});
  CHECK(head.classes == 3);
  CHECK(head.label == "softmax_label");
  weighted.symbol = WithClassWeights(TestRegistry(), plain.symbol, head, {1, 2, 1});
  weighted.optimizer = sgd(0.1);
  for (const int64_t batches : {1, 4}) {
    CAPTURE(batches);
    weighted.batch = kExamples / batches;
    weighted.grad_accum = batches;
    const Outcome outcome = RunWhole(data, weighted);
    for (const auto& [name, values] : copied.bits) {
      for (size_t i = 0; i < values.size(); ++i)
        CHECK(outcome.bits.at(name)[i] == doctest::Approx(values[i]).epsilon(1e-3));
    }
    for (size_t e = 0; e < copied.epochs.size(); ++e) {
      const double loss = copied.epochs[e].train[0].second * static_cast<double>(count) / kExamples;
      CHECK(outcome.epochs[e].train[0].second == doctest::Approx(loss).epsilon(1e-4));
    }
  }
  CHECK_THROWS_WITH_AS(WithClassWeights(TestRegistry(), weighted.symbol, head, {1, 1, 1}),
                       "'softmax' already has class_weights: keep one of the two", Error);
}

TEST_CASE("weights of classes that are balanced") {
  CHECK(BalancedWeights({12, 4}) == std::vector<double>{16.0 / 24, 2});
  // scikit-learn omits the class without examples.
  CHECK(BalancedWeights({3, 0, 1}) == std::vector<double>{4.0 / 6, 1, 2});
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
    CHECK((model.args.contains(name) ? model.args : model.auxs).at(name).ToVector() ==
          average.ToVector());
  }
  Evaluation evaluation(*process.runtime, model.symbol, *process.val, {{"accuracy", {}, "", ""}},
                        nullptr, Context::cpu());
  SetParameters(model, &evaluation.executor(), {});
  CHECK(evaluation.Run()[1].second == last.state.best[0].value);
  // The executor holds the weights again.
  for (const auto& [name, array] : process.trainer->executor().args())
    CHECK(array.ToVector() == last.args.at(name).ToVector());
}

TEST_CASE(
    "patterns freeze parameters and multiply their rates; one that matches nothing is rejected") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 1;
  spec.optimizer = {"sgd", {{"lr", "0.1"}}};
  Process start(data, spec);
  const auto first = [&](const std::string& name) {
    return start.trainer->executor().arg(name).ToVector();
  };
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
  const Bits plain = after_a_step({}),
             patterned = after_a_step({{"fc2*", 3}, {"*", 5}, {"fc?_*", 3}, {"fc1*", 0}});
  CHECK(patterned.at("fc1_weight") == first("fc1_weight"));
  const std::vector<float> before = first("fc2_weight");
  for (size_t i = 0; i < before.size(); ++i) {
    const double once = static_cast<double>(plain.at("fc2_weight")[i]) - before[i],
                 thrice = static_cast<double>(patterned.at("fc2_weight")[i]) - before[i];
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
    CHECK(result.epochs == 4);  // the first epoch is the best
    CHECK(process.trainer->finished());
  }
  Process process(data, spec);
  const Checkpoint last = LoadCheckpoint(*process.runtime, spec.folder + "/last");
  process.trainer->Resume(last);
  CHECK(process.trainer->finished());
  process.trainer->Resume(last, /*extend=*/true);
  Log log;
  CHECK(process.trainer->Run(log).epochs == 7);  // three more do not improve either
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
  const auto least = std::min_element(
      log.epochs.begin(), log.epochs.end(),
      [](const auto& a, const auto& b) { return a.val[2].second < b.val[2].second; });
  CHECK(result.best[1].epoch == least->epoch);
  CHECK(result.best[1].value == least->val[2].second);
  CHECK(PeekState(spec.folder + "/best").epoch == result.best[0].epoch);
  CHECK(PeekState(spec.folder + "/best-cross_entropy").epoch == result.best[1].epoch);
  spec.best_metrics = {"acuracy"};
  CHECK_THROWS_WITH(Process(data, spec), doctest::Contains("did you mean 'accuracy'?"));
}

TEST_CASE("a time limit ends a run inside an epoch, evaluated and saved, and it can be continued") {
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
  // A slow listener uses up the time after the first step.
  struct Lingers : TrainListener {
    void OnStep(const StepEvent&) override {
      std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    }
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

}  // namespace
}  // namespace mxtrain::test
