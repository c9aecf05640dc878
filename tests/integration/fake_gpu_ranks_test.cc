// SPDX-License-Identifier: Apache-2.0
// Whole runs of dist_device_sync on fake GPUs of ranks that are threads: the bits are those of as
// many GPUs of one process.
#include <doctest/doctest.h>

#include <chrono>
#include <future>

#include "mxtrain/base/error.h"
#include "tests/support/fake_gpu_runs.h"
#include "tests/support/fake_rank_gpus.h"
#include "tests/support/rank_runs.h"

namespace mxtrain::test {
namespace {

RunSpec OfRank(RunSpec spec, const Group& group) {
  spec.kvstore = "dist_device_sync";
  spec.group = group;
  spec.new_communicator = FakeRankCommunicators(group);
  return spec;
}

TEST_CASE("two ranks with a GPU each give the checkpoint of two GPUs of one process") {
  const TempDir data;
  WriteTable(data);
  std::vector<RunSpec> specs(6, OnFakeGpus(1));
  specs[1].clip_norm = 0.5;
  specs[1].average_decay = 0.9;
  specs[2].grad_accum = 2;
  specs[2].optimizer = {"adam", {{"lr", "0.01"}}};
  specs[3].engine = "naive";
  specs[4].lr_mult = {{"*_bias", 0}};
  specs[4].bucket_bytes = 1;
  specs[5].symbol = QuietNet();
  specs[5].dist.wire = DistOptions::Wire::kBfloat16;
  specs[5].bucket_bytes = 400;
  for (size_t s = 0; s < specs.size(); ++s) {
    CAPTURE(s);
    const Outcome ranks = RunAsRanks(2, data, specs[s], OfRank),
                  alone = RunWhole(data, Alone(specs[s]));
    CheckSameCheckpoint(ranks, alone);
    CheckNearlySameEpochs(ranks, alone);
  }
}

TEST_CASE("ranks with two GPUs each give the bits of as many workers of the CPU") {
  const TempDir data;
  WriteTable(data);
  RunSpec workers;
  workers.symbol = NoisyNet();
  workers.workers = 4;
  const Outcome expected = RunWhole(data, workers);
  const Outcome ranks = RunAsRanks(2, data, OnFakeGpus(2), OfRank);
  CHECK(ranks.bits == expected.bits);
  CheckNearlySameEpochs(ranks, expected);
  const Outcome four = RunAsRanks(4, data, OnFakeGpus(1), OfRank);
  CHECK(four.bits == expected.bits);
}

TEST_CASE("a run of ranks is continued by one process, and the other way round") {
  const TempDir data;
  WriteTable(data);
  const Outcome whole = RunWhole(data, Alone(OnFakeGpus(1)));
  const TempDir by_ranks, by_one;
  const auto half = [](RunSpec spec, const TempDir& folder) {
    spec.folder = folder.path("checkpoints");
    spec.report_steps = 1;
    return spec;
  };
  const auto stop = [&](Process& process) {
    std::atomic<int> flag = 0;
    StopAfter listener(8, &flag);
    CHECK(process.trainer->Run(listener, &flag).end == RunEnd::kStopped);
  };
  const auto resume = [](Process& process, const RunSpec& spec) {
    std::vector<std::string> warnings;
    process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
    process.runtime->resources().Restore({process.runtime->resources().seed(), 0});
    Log log;
    CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
  };
  RunRanks(2, [&](const Group& group) {
    const RunSpec spec = half(OfRank(OnFakeGpus(1), group), by_ranks);
    Process process(data, spec);
    stop(process);
  });
  {
    const RunSpec spec = half(Alone(OnFakeGpus(1)), by_ranks);
    Process process(data, spec);
    resume(process, spec);
    CHECK(BitsOf(LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last"))) ==
          whole.bits);
  }
  {
    const RunSpec spec = half(Alone(OnFakeGpus(1)), by_one);
    Process process(data, spec);
    stop(process);
  }
  RunRanks(2, [&](const Group& group) {
    const RunSpec spec = half(OfRank(OnFakeGpus(1), group), by_one);
    Process process(data, spec);
    resume(process, spec);
    group->Barrier();  // the last save is complete
    if (!group->first()) return;
    CHECK(BitsOf(LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last"))) ==
          whole.bits);
  });
}

// Blocks a rank in the middle of a run, so that it neither sums nor answers.
class Stuck final : public TrainListener {
 public:
  explicit Stuck(std::future<void> freed) : freed_(std::move(freed)) {}
  void OnStep(const StepEvent& e) override {
    if (e.step == 7) freed_.wait_for(std::chrono::seconds(120));
  }

 private:
  std::future<void> freed_;
};

TEST_CASE("a rank that does not answer ends the others within the timeout; nothing is saved") {
  const TempDir data, folder;
  WriteTable(data);
  NewFakeGpuRuntime();  // the first one takes long
  std::promise<void> ended;
  Log log;
  const auto errors = ErrorsOf(2,
                               [&](const Group& group) {
                                 RunSpec spec = OfRank(OnFakeGpus(1), group);
                                 spec.epochs = 100;
                                 spec.report_steps = 1;
                                 spec.folder = folder.path("checkpoints");
                                 Process process(data, spec);
                                 if (!group->first()) {
                                   Stuck stuck(ended.get_future());
                                   process.trainer->Run(stuck);
                                   return;
                                 }
                                 try {
                                   process.trainer->Run(log);
                                 } catch (const Error&) {
                                   ended.set_value();
                                   throw;
                                 }
                               },
                               {.timeout_seconds = 5});
  CHECK(errors[0].starts_with("10: rank 0 waited 5 s for the other ranks"));
  CHECK(errors[0].find("rank 1 ended or does not answer") != std::string::npos);
  CHECK(errors[1].starts_with("10: "));
  CHECK(log.epochs.size() == 1);
  CHECK(log.saves == 1);
}

TEST_CASE("an error of one rank ends its sums and is its own; the others lose it") {
  const TempDir data;
  WriteTable(data);
  NewFakeGpuRuntime();
  class Fails final : public TrainListener {
   public:
    void OnStep(const StepEvent& e) override {
      if (e.step == 7) throw Error(ErrorKind::kFileSystem, "the disk is full");
    }
  };
  const auto errors = ErrorsOf(2,
                               [&](const Group& group) {
                                 RunSpec spec = OfRank(OnFakeGpus(1), group);
                                 spec.epochs = 100;
                                 spec.report_steps = 1;
                                 Process process(data, spec);
                                 Fails fails;
                                 TrainListener silent;
                                 process.trainer->Run(group->first() ? silent : fails);
                               },
                               {.timeout_seconds = 5});
  CHECK(errors[0].starts_with("10: "));
  CHECK(errors[1] == "8: the disk is full");
}

TEST_CASE("ranks with different numbers of GPUs are refused before the run") {
  const TempDir data;
  WriteTable(data);
  const auto errors = ErrorsOf(2, [&](const Group& group) {
    const Process process(data, OfRank(OnFakeGpus(group->first() ? 2 : 1), group));
  });
  for (const std::string& error : errors) {
    CHECK(error ==
          "2: rank 0 trains on 2 GPUs, rank 1 on 1 GPU: all ranks need the same number (--device)");
  }
}

}  // namespace
}  // namespace mxtrain::test
