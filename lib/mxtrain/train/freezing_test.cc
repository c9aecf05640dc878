// SPDX-License-Identifier: Apache-2.0
// Layers that are frozen for some epochs, and learn from then on.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/frozen_run.h"

namespace mxtrain::test {
namespace {

Bits BitsAtEpoch(const std::string& folder, int epoch) {
  const auto runtime = NewRuntime("naive", 1, 5);
  return BitsOf(
      LoadCheckpoint(*runtime, CheckpointFolder(folder).File(format("epoch-{:04}", epoch))));
}

TEST_CASE("layers that are frozen for some epochs learn afterwards, from zero optimizer states") {
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  spec.folder = folder.path("checkpoints");
  const FrozenOutcome plain = RunFrozen(data, spec);
  const Bits first = BitsAtEpoch(spec.folder, 1), second = BitsAtEpoch(spec.folder, 2),
             third = BitsAtEpoch(spec.folder, 3);
  for (const char* name : {"conv_weight", "bn_gamma", "bn_beta", "bn_moving_mean"}) {
    CAPTURE(name);
    CHECK(first.at(name) == second.at(name));
    CHECK(second.at(name) != third.at(name));
  }
  CHECK(first.at("fc_weight") != second.at("fc_weight"));
  CHECK_FALSE(first.contains("conv_weight/0"));
  CHECK_FALSE(second.contains("conv_weight/0"));  // saved before they begin to learn
  CHECK(third.at("conv_weight/0") != std::vector<float>(third.at("conv_weight/0").size()));
  spec.cached = true;
  const TempDir other;
  spec.folder = other.path("checkpoints");
  CHECK(RunFrozen(data, spec).last == plain.last);
  spec.folder.clear();
  CheckFrozenResumes(data, spec, {3, 10, 11, 17});  // 10: where they begin to learn
}

// Adam's first update of a parameter has the size of the rate, whatever its gradient is.
void CheckFirstUpdate(double warmup, double factor) {
  CAPTURE(warmup);
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  spec.freeze.warmup = warmup;
  spec.average_decay.reset();
  spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  std::atomic<int> stop = 0;
  StopAfter listener(11, &stop);  // five steps in an epoch
  process.trainer->Run(listener, &stop);
  const Bits before = BitsAtEpoch(spec.folder, 2),
             after = BitsOf(
                 LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last")));
  const double rate = factor * 0.01 * 0.5 * (1 + std::cos(3.14159265358979 * 10 / 20));
  for (size_t i = 0; i < before.at("conv_weight").size(); ++i) {
    const double change = std::abs(static_cast<double>(after.at("conv_weight")[i]) -
                                   static_cast<double>(before.at("conv_weight")[i]));
    CHECK(change < 1.02 * rate);
    CHECK(change > 0.9 * rate);
  }
}

TEST_CASE("an optimizer counts the updates of a parameter from the step in which it is unfrozen") {
  CheckFirstUpdate(0, 1);
}

TEST_CASE("the rate of parameters that are unfrozen rises over a part of the steps that are left") {
  CheckFirstUpdate(0.5, 1.0 / 5);  // of ten steps
  CheckFirstUpdate(1, 1.0 / 10);
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 2;
  const std::string at_once = RunFrozen(data, spec).last;
  spec.freeze.warmup = 0.1;  // one step: the schedule's rate from the first on
  CHECK(RunFrozen(data, spec).last == at_once);
  spec.freeze.warmup = 0.5;
  CHECK(RunFrozen(data, spec).last != at_once);
  CheckFrozenResumes(data, spec, {10, 11, 13, 17});
}

TEST_CASE("early stopping counts anew where frozen layers begin to learn") {
  const TempDir data;
  WriteImages(data);
  FrozenSpec spec;
  spec.net = TrunkAndHead(false, /*normed=*/false);
  spec.freeze.patterns = {"conv*"};
  spec.average_decay.reset();
  spec.epochs = 12;
  spec.optimizer = {"sgd", {{"lr", "0"}}};  // never better
  spec.early_stop = {3, 0};
  CHECK(RunFrozen(data, spec).epochs.size() == 4);
  spec.freeze.epochs = 2;
  CHECK(RunFrozen(data, spec).epochs.size() == 5);
  spec.freeze.epochs = 6;  // longer than the patience
  CHECK(RunFrozen(data, spec).epochs.size() == 9);
}

// How many parameters learn when the run saves, and in the last step.
class WatchLearning final : public TrainListener {
 public:
  explicit WatchLearning(Trainer& trainer) : trainer_(trainer) {}
  void OnSave(const SaveEvent&) override { learning.push_back(Learning()); }
  void OnStep(const StepEvent&) override { last = Learning(); }
  std::vector<size_t> learning;
  size_t last = 0;

 private:
  size_t Learning() const { return trainer_.executor().grads().size(); }
  Trainer& trainer_;
};

TEST_CASE("an epoch is saved before the layers that were frozen are bound anew") {
  const TempDir data, folder;
  WriteImages(data);
  FrozenSpec spec;
  spec.freeze.epochs = 1;
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  FrozenProcess process(data, spec);
  WatchLearning listener(*process.trainer);
  process.trainer->Run(listener);
  REQUIRE(listener.learning.size() >= 2);
  CHECK(listener.learning.front() == 2);
  CHECK(listener.last == 5);
}

TEST_CASE("a rehearsal tries the layers that are frozen at first too") {
  const TempDir data;
  WriteImages(data);
  for (const bool cached : {false, true}) {
    FrozenSpec spec;
    spec.cached = cached;
    spec.freeze.epochs = 1;
    FrozenProcess process(data, spec);
    process.trainer->Rehearse();
    CHECK(process.trainer->executor().grads().size() == 5);
  }
}

}  // namespace
}  // namespace mxtrain::test
