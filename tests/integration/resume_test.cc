// SPDX-License-Identifier: Apache-2.0
// An interrupted and resumed run gives the bits of an uninterrupted one; a finished run is
// extended.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// Stops the run after each of these steps, resumes it in a new process, and compares with the
// uninterrupted run.
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
    const Checkpoint checkpoint =
        CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings);
    CHECK(warnings.empty());
    CHECK(checkpoint.state.step == step);
    process.trainer->Resume(checkpoint);
    Log log;
    process.trainer->Run(log);
    CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
    REQUIRE(!log.epochs.empty());
    const size_t missed = whole.epochs.size() - log.epochs.size();
    for (size_t e = 0; e < log.epochs.size(); ++e)
      CheckSameEpoch(log.epochs[e], whole.epochs[missed + e]);
  }
}

TEST_CASE("a run that is stopped anywhere and resumed ends in the bytes of an unbroken one") {
  const TempDir data;
  WriteTable(data);
  for (const NamedSpec& optimizer : {NamedSpec{"sgd", {{"lr", "0.1"}, {"momentum", "0.9"}}},
                                     NamedSpec{"adam", {{"lr", "0.01"}}}}) {
    CAPTURE(optimizer.name);
    RunSpec spec;
    spec.symbol = NoisyNet();
    spec.optimizer = optimizer;
    // First, at an epoch's end, after a milestone, after the second, the last.
    CheckResumes(data, spec, {1, 5, 8, 13, 15});
  }
}

TEST_CASE("averages, steps of several batches and the state of a plateau survive a stop") {
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

TEST_CASE(
    "a run that died between the save of its last step and its end is ended when it is resumed") {
  struct Dies : TrainListener {
    explicit Dies(int64_t step) : after(step) {}
    void OnSave(const SaveEvent& e) override {
      if (e.step == after) Throw(ErrorKind::kFileSystem, "dead");
    }
    int64_t after;
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
    for (const char* name : {"/checkpoints/last", "/checkpoints/best"})
      CHECK(ReadFile(killed.path() + name) == ReadFile(unbroken.path() + name));
    process.trainer->Resume(LoadCheckpoint(*process.runtime, spec.folder + "/last"));
    CHECK(process.trainer->finished());
  }
}

TEST_CASE(
    "a resumed run must fit: another net, another seed and a batch that cannot be divided are "
    "rejected") {
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
  CHECK_THROWS_WITH(Process(data, other).trainer->Resume(checkpoint),
                    doctest::Contains("belongs to another net"));
  other = spec;
  other.seed = 9;
  CHECK_THROWS_WITH(Process(data, other).trainer->Resume(checkpoint), doctest::Contains("seed 5"));
  other = spec;
  other.workers = 3;
  CHECK_THROWS_WITH(Process(data, other), doctest::Contains("cannot be divided among 3 workers"));
}

// The learning rate of each step, and how far the run came.
struct RateLog final : TrainListener {
  void OnStep(const StepEvent& e) override { rates.push_back(e.lr); }
  void OnEpoch(const EpochEvent& e) override { epochs = e.epoch; }
  std::vector<double> rates;
  int64_t epochs = 0;
};

TEST_CASE(
    "a run resumed with another batch size continues at the same example, for the epochs that are "
    "left") {
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
  RateLog steps;
  const TrainResult result = second.trainer->Run(steps);
  CHECK(steps.rates.size() == (11 - 4) + 11 + 11);
  CHECK(result.epochs == 4);
  CHECK(result.steps == 7 + 29);
  // After 15 batches of 4: past both milestones, 7 and 12.
  CHECK(steps.rates[0] == 0.1 * 0.5 * 0.5);

  spec.batch = 6;
  Process third(data, spec);
  CHECK_THROWS_WITH(third.trainer->Resume(LoadCheckpoint(*third.runtime, last)),
                    "the checkpoint is inside epoch 2, 16 examples after its start, where no batch "
                    "of 6 starts; resume with "
                    "data.batch_size=8, or from a checkpoint between two epochs (epoch-0001)");
}

TEST_CASE(
    "a finished run is extended by its epochs with a new schedule, and an extended one is "
    "resumed") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  RateLog steps;
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
  CHECK_THROWS_WITH(
      process.trainer->Resume(stopped, /*extend=*/true),
      "the run is not finished: it has made 13 of 20 steps; resume it without extending");
  process.trainer->Resume(stopped);
  RateLog rest;
  CHECK(process.trainer->Run(rest).epochs == 4);
  CHECK(rest.rates == std::vector<double>(steps.rates.begin() + 3, steps.rates.end()));
}

TEST_CASE(
    "a run that was stopped after its last step, before its last epoch was ended, is extended by "
    "whole epochs") {
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

}  // namespace
}  // namespace mxtrain::test
