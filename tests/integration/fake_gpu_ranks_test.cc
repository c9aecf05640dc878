// SPDX-License-Identifier: Apache-2.0
// Whole runs of dist_device_sync on fake GPUs of ranks that are threads: the bits are those of as
// many GPUs of one process.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <mutex>

#include "mxtrain/base/error.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_rank_gpus.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

using Group = std::shared_ptr<ProcessGroup>;

RunSpec OnFakeGpus(int gpus) {
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.make_runtime = [](const RunSpec& s) { return NewFakeGpuRuntime(s.engine, s.seed); };
  spec.ctx = Context::gpu(0);
  for (int i = 0; i < gpus; ++i) spec.devices.push_back(Context::gpu(i));
  return spec;
}

// In one process.
RunSpec Alone(RunSpec spec) {
  spec.devices = OnFakeGpus(2).devices;
  spec.kvstore = "device";
  spec.new_communicator = NewFakeCommunicator;
  return spec;
}

RunSpec OfRank(RunSpec spec, const Group& group) {
  spec.kvstore = "dist_device_sync";
  spec.group = group;
  spec.new_communicator = FakeRankCommunicators(group);
  return spec;
}

// Rank 0's outcome; the epochs of the others must be the same.
Outcome RunAsRanks(int size, const TempDir& data, const RunSpec& spec) {
  const TempDir folder;
  Outcome first;
  std::mutex mutex;
  std::vector<std::vector<EpochEvent>> others;
  RunRanks(size, [&](const Group& group) {
    RunSpec own = OfRank(spec, group);
    own.folder = folder.path("checkpoints");
    Process process(data, own);
    Log log;
    CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
    CHECK((log.saves > 0) == group->first());
    group->Barrier();  // the last save is complete
    const std::lock_guard lock(mutex);
    if (!group->first()) {
      others.push_back(log.epochs);
      return;
    }
    const CheckpointFolder checkpoints(own.folder);
    first = {ReadFile(checkpoints.File("last")), log.epochs,
             BitsOf(LoadCheckpoint(*process.runtime, checkpoints.File("last")))};
  });
  for (const std::vector<EpochEvent>& epochs : others) {
    REQUIRE(epochs.size() == first.epochs.size());
    for (size_t e = 0; e < epochs.size(); ++e) CheckSameEpoch(epochs[e], first.epochs[e]);
  }
  return first;
}

// Counts are exact; sums of losses differ in their order.
void CheckNearlySameEpochs(const Outcome& a, const Outcome& b) {
  REQUIRE(a.epochs.size() == b.epochs.size());
  for (size_t e = 0; e < a.epochs.size(); ++e) {
    for (const auto& [of_a, of_b] : {std::pair{&a.epochs[e].train, &b.epochs[e].train},
                                     std::pair{&a.epochs[e].val, &b.epochs[e].val}}) {
      REQUIRE(of_a->size() == of_b->size());
      for (size_t k = 0; k < of_a->size(); ++k) {
        const auto& [name, value] = (*of_a)[k];
        if (name == "accuracy") CHECK(value == (*of_b)[k].second);
        CHECK(value == doctest::Approx((*of_b)[k].second).epsilon(1e-9));
      }
    }
  }
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
    const Outcome ranks = RunAsRanks(2, data, specs[s]), alone = RunWhole(data, Alone(specs[s]));
    CHECK(ranks.bits == alone.bits);
    CHECK(ranks.last == alone.last);
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
  const Outcome ranks = RunAsRanks(2, data, OnFakeGpus(2));
  CHECK(ranks.bits == expected.bits);
  CheckNearlySameEpochs(ranks, expected);
  const Outcome four = RunAsRanks(4, data, OnFakeGpus(1));
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

// What each rank's run throws.
std::vector<std::string> ErrorsOf(int ranks, const std::function<void(const Group&)>& body,
                                  const ProcessGroup::Options& options = {}) {
  std::vector<std::string> errors(static_cast<size_t>(ranks));
  const auto kept = [&](const Group& group) {
    try {
      body(group);
    } catch (const Error& e) {
      errors[static_cast<size_t>(group->rank())] =
          format("{}: {}", static_cast<int>(e.kind()), e.what());
    }
  };
  try {
    RunRanks(ranks, kept, options);
  } catch (const Error& e) {  // a group that failed cannot be closed
    CHECK(e.kind() == kRankLost);
  }
  return errors;
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
