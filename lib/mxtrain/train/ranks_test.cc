// SPDX-License-Identifier: Apache-2.0
// Distributed training between ranks that are threads, each with a process of its own.
#include <doctest/doctest.h>

#include <mutex>

#include "mxtrain/train/internal/best_epochs.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

// Rank 0's outcome; the epochs of the others must be the same.
Outcome RunAsRanks(int size, const TempDir& data, const RunSpec& spec) {
  const TempDir folder;
  Outcome first;
  std::mutex mutex;
  std::vector<std::vector<EpochEvent>> others;
  RunRanks(size, [&](const std::shared_ptr<ProcessGroup>& group) {
    RunSpec own = spec;
    own.group = group;
    own.folder = folder.path("checkpoints");
    Process process(data, own);
    Log log;
    const TrainResult result = process.trainer->Run(log);
    CHECK(result.end == RunEnd::kComplete);
    CHECK((log.saves > 0) == group->first());
    group->Barrier();  // the last save is complete
    const std::lock_guard lock(mutex);
    if (group->rank() > 0) {
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

TEST_CASE("ranks give the checkpoint of as many workers of one process, byte for byte") {
  const TempDir data;
  WriteTable(data);
  for (int size : {2, 4}) {
    for (int variant = 0; variant < 4; ++variant) {
      CAPTURE(size);
      CAPTURE(variant);
      RunSpec spec;
      spec.symbol = NoisyNet();
      if (variant == 1) spec.clip_norm = 0.5;
      if (variant == 2) spec.grad_accum = 2;
      if (variant == 3) spec.average_decay = 0.9;
      const Outcome ranks = RunAsRanks(size, data, spec);
      spec.workers = size;
      const Outcome workers = RunWhole(data, spec);
      CHECK(LargestDifference(ranks.bits, workers.bits) == 0);
      CHECK(ranks.last == workers.last);
      for (size_t e = 0; e < ranks.epochs.size(); ++e) {
        const EpochEvent &a = ranks.epochs[e], &b = workers.epochs[e];
        for (const auto& [of_ranks, of_workers] :
             {std::pair{&a.train, &b.train}, std::pair{&a.val, &b.val}}) {
          REQUIRE(of_ranks->size() == of_workers->size());
          for (size_t k = 0; k < of_ranks->size(); ++k) {
            const auto& [name, value] = (*of_ranks)[k];
            CHECK(name == (*of_workers)[k].first);
            // Counts are exact; sums of losses differ in their order.
            if (name == "accuracy") CHECK(value == (*of_workers)[k].second);
            CHECK(value == doctest::Approx((*of_workers)[k].second).epsilon(1e-9));
          }
        }
      }
    }
  }
}

TEST_CASE("without batch norm and randomness, ranks have the losses of one process") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  const Outcome one = RunWhole(data, spec);
  for (int size : {1, 2, 8}) {
    const Outcome ranks = RunAsRanks(size, data, spec);
    CHECK(LargestDifference(one.bits, ranks.bits) < 2e-5);
    for (size_t e = 0; e < one.epochs.size(); ++e) {
      for (size_t k = 0; k < one.epochs[e].val.size(); ++k)
        CHECK(ranks.epochs[e].val[k].second ==
              doctest::Approx(one.epochs[e].val[k].second).epsilon(1e-4));
    }
  }
}

TEST_CASE("a stop of one rank stops all after the same step; other ranks continue the run") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  const Outcome whole = RunWhole(data, spec);
  for (int64_t step : {1, 4, 5, 7}) {
    CAPTURE(step);
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    std::vector<int64_t> ended(3);
    RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
      RunSpec own = spec;
      own.group = group;
      own.report_steps = 1;
      Process process(data, own);
      std::atomic<int> stop{0};
      StopAfter listener(group->rank() == 1 ? step : -1, &stop);
      const TrainResult result = process.trainer->Run(listener, &stop);
      CHECK(result.end == RunEnd::kStopped);
      ended[static_cast<size_t>(group->rank())] = result.steps;
    });
    CHECK(ended[0] == ended[1]);
    CHECK(ended[0] >= step);
    CHECK(ended[0] <= step + 2);
    RunRanks(4, [&](const std::shared_ptr<ProcessGroup>& group) {
      RunSpec own = spec;
      own.group = group;
      Process process(data, own);
      std::vector<std::string> warnings;
      process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
      group->Barrier();
      Log log;
      CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
      if (group->rank() > 0) return;
      const Bits bits =
          BitsOf(LoadCheckpoint(*process.runtime, CheckpointFolder(spec.folder).File("last")));
      CHECK(LargestDifference(bits, whole.bits) < 2e-5);
      REQUIRE(!log.epochs.empty());
      // The epoch in which the run was stopped counts the examples of both runs.
      CHECK(FindValue(log.epochs[0].train, "accuracy").value() ==
            doctest::Approx(
                FindValue(whole.epochs[static_cast<size_t>(log.epochs[0].epoch - 1)].train,
                          "accuracy")
                    .value()));
    });
  }
}

TEST_CASE("a run saved by ranks in the middle of an epoch resumes to the same bytes") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.save_every_steps = 3;
  const Outcome whole = RunAsRanks(2, data, spec);
  const TempDir folder;
  spec.folder = folder.path("checkpoints");
  RunSpec half = spec;
  half.max_steps = 8;
  for (const RunSpec& part : {half, spec}) {
    RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
      RunSpec own = part;
      own.group = group;
      Process process(data, own);
      std::vector<std::string> warnings;
      if (part.max_steps == 0)
        process.trainer->Resume(
            CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
      group->Barrier();
      Log log;
      process.trainer->Run(log);
    });
  }
  CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
}

TEST_CASE("a rank that ends by an error does not wait for the others, which notice it") {
  struct Failing final : TrainListener {
    void OnEpoch(const EpochEvent&) override { Throw(ErrorKind::kFileSystem, "the disk is full"); }
  };
  const TempDir data;
  WriteTable(data);
  ThreadRanks ranks(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      RunSpec spec;
      spec.symbol = QuietNet();
      spec.group = std::make_shared<ProcessGroup>(
          ranks.Opener(r), ProcessGroup::Options{.timeout_seconds = r == 0 ? 600.0 : 0.5});
      try {
        Process process(data, spec);
        Failing failing;
        TrainListener silent;
        process.trainer->Run(r == 0 ? failing : silent);
      } catch (const Error& e) {
        errors[static_cast<size_t>(r)] = e.what();
      }
      spec.group->Abort(8);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(errors[0].find("the disk is full") != std::string::npos);
  CHECK(errors[1].find("train.kvstore.timeout") != std::string::npos);
}

}  // namespace
}  // namespace mxtrain::test
