// SPDX-License-Identifier: Apache-2.0
// Distributed training between ranks that are threads, each with a process of its own.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <mutex>
#include <thread>

#include "mxtrain/operator/plans.h"
#include "mxtrain/train/internal/best_epochs.h"
#include "mxtrain/train/internal/ranks.h"
#include "tests/support/rank_runs.h"

namespace mxtrain::test {
namespace {

TEST_CASE("ranks give the checkpoint of as many workers of one process, byte for byte") {
  const TempDir data;
  WriteTable(data);
  for (int size : {2, 4}) {
    for (int variant = 0; variant < 6; ++variant) {
      CAPTURE(size);
      CAPTURE(variant);
      RunSpec spec;
      spec.symbol = NoisyNet();
      if (variant == 1) spec.clip_norm = 0.5;
      if (variant == 2) spec.grad_accum = 2;
      if (variant == 3) spec.average_decay = 0.9;
      spec.dist.shard_states = variant >= 4;  // without an influence on the bits
      if (variant == 5) {
        spec.optimizer = {"adam", {{"lr", "0.01"}}};
        spec.clip_norm = 0.5;
      }
      const Outcome ranks = RunAsRanks(size, data, spec);
      spec.workers = size;
      const Outcome workers = RunWhole(data, spec);
      CHECK(LargestDifference(ranks.bits, workers.bits) == 0);
      CheckSameCheckpoint(ranks, workers);
      CheckNearlySameEpochs(ranks, workers);
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

TEST_CASE("with wire bfloat16 ranks train alike, with nearly the losses of float32") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  for (int size : {2, 4}) {
    CAPTURE(size);
    spec.dist = {};
    const Outcome exact = RunAsRanks(size, data, spec);
    spec.dist.wire = DistOptions::Wire::kBfloat16;
    const Outcome rounded = RunAsRanks(size, data, spec), again = RunAsRanks(size, data, spec);
    CHECK(rounded.last == again.last);
    const double difference = LargestDifference(exact.bits, rounded.bits);
    CHECK(difference > 1e-6);  // they are rounded
    CHECK(difference < 2e-2);
    for (size_t e = 0; e < exact.epochs.size(); ++e) {
      const double loss = FindValue(exact.epochs[e].val, "cross_entropy").value();
      CHECK(FindValue(rounded.epochs[e].val, "cross_entropy").value() ==
            doctest::Approx(loss).epsilon(0.01));
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
    spec.dist.shard_states = step > 4;
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    std::vector<int64_t> ended(3);
    RunRanks(2, [&](const Group& group) {
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
    RunRanks(4, [&](const Group& group) {
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

// Trains into spec.folder, resumed from there if `resume`; is stopped after so many steps (0: not).
void TrainPart(int size, const TempDir& data, const RunSpec& spec, int64_t steps, bool resume) {
  RunRanks(size, [&](const Group& group) {
    RunSpec own = spec;
    own.group = group;
    own.report_steps = 1;
    Process process(data, own);
    std::vector<std::string> warnings;
    if (resume) {
      process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
    }
    group->Barrier();
    std::atomic<int> stop{0};
    StopAfter listener(steps - 1, &stop);  // what one rank wishes, all do a step later
    const TrainResult result = process.trainer->Run(listener, &stop);
    CHECK(result.end == (steps > 0 ? RunEnd::kStopped : RunEnd::kComplete));
  });
}

TEST_CASE("a run saved by ranks in the middle of an epoch resumes to the same bytes") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  spec.save_every_steps = 3;
  using Wire = DistOptions::Wire;
  for (const auto& variant :
       {std::pair{2, DistOptions()}, std::pair{2, DistOptions{.wire = Wire::kBfloat16}},
        std::pair{2, DistOptions{.wire = Wire::kTwoBit, .threshold = 0.2F}},
        std::pair{4, DistOptions{.wire = Wire::kTwoBit, .threshold = 0.1F, .shard_states = true}},
        std::pair{2, DistOptions{.shard_states = true}}}) {
    const int size = variant.first;
    const auto wire = static_cast<int>(variant.second.wire);
    CAPTURE(size);
    CAPTURE(wire);
    spec.dist = variant.second;
    const Outcome whole = RunAsRanks(size, data, spec);
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    TrainPart(size, data, spec, 8, /*resume=*/false);
    TrainPart(size, data, spec, 0, /*resume=*/true);
    CHECK(ReadFile(CheckpointFolder(spec.folder).File("last")) == whole.last);
  }
}

TEST_CASE("residuals of compressed gradients are kept for each rank, and are of as many ranks") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.folder = folder.path("checkpoints");
  spec.dist = {.wire = DistOptions::Wire::kTwoBit, .threshold = 0.2F};
  TrainPart(2, data, spec, 4, /*resume=*/false);
  const auto load = [&] {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    std::map<std::string, std::vector<float>> residuals;
    const Checkpoint last = LoadCheckpoint(runtime, CheckpointFolder(spec.folder).File("last"));
    for (const auto& [name, array] : last.residuals) residuals[name] = array.ToVector();
    return residuals;
  };
  const auto of_two = load();
  REQUIRE(of_two.size() == 8);  // two ranks, four parameters
  CHECK(of_two.contains("0/fc1_weight"));
  CHECK(of_two.at("0/fc1_weight") != of_two.at("1/fc1_weight"));
  // Of another number of ranks they restart at zero; without compression they are dropped.
  TrainPart(4, data, spec, 9, /*resume=*/true);
  CHECK(load().size() == 16);
  spec.dist = {};
  TrainPart(2, data, spec, 13, /*resume=*/true);
  CHECK(load().empty());
}

TEST_CASE("sharded states are kept once") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.optimizer = {"adam", {{"lr", "0.01"}}};
  struct Start final : TrainListener {
    void OnStart(const RunStart& start) override { bytes = start.optimizer_bytes; }
    int64_t bytes = 0;
  };
  std::vector<int64_t> bytes;  // whole, of rank 0, of rank 1
  for (int size : {1, 2}) {
    std::mutex mutex;
    std::vector<int64_t> of_ranks(static_cast<size_t>(size));
    RunRanks(size, [&](const Group& group) {
      RunSpec own = spec;
      own.group = group;
      own.dist.shard_states = true;
      own.max_steps = 1;
      Process process(data, own);
      Start start;
      process.trainer->Run(start);
      const std::lock_guard lock(mutex);
      of_ranks[static_cast<size_t>(group->rank())] = start.bytes;
    });
    bytes.insert(bytes.end(), of_ranks.begin(), of_ranks.end());
  }
  CHECK(bytes[0] > 0);
  CHECK(bytes[1] > 0);
  CHECK(bytes[2] > 0);
  CHECK(bytes[1] + bytes[2] == bytes[0]);
}

TEST_CASE("a slow rank is named once") {
  const TempDir data;
  WriteTable(data);
  std::vector<std::string> warnings;
  std::vector<double> waiting;
  RunRanks(3, [&](const Group& group) {
    struct Listener final : TrainListener {
      void OnStep(const StepEvent&) override {
        if (slow) std::this_thread::sleep_for(std::chrono::milliseconds(250));
      }
      void OnEpoch(const EpochEvent& e) override { waiting = e.waiting; }
      void OnWarning(const std::string& text) override { warnings.push_back(text); }
      bool slow = false;
      std::vector<double> waiting;
      std::vector<std::string> warnings;
    } listener;
    listener.slow = group->rank() == 1;
    const TempDir folder;
    RunSpec spec;
    spec.symbol = NoisyNet();
    spec.group = group;
    spec.folder = folder.path("checkpoints");
    Process process(data, spec);
    process.trainer->Run(listener);
    if (!group->first()) {
      CHECK(listener.warnings.empty());
      return;
    }
    warnings = listener.warnings;
    waiting = listener.waiting;
  });
  REQUIRE(waiting.size() == 3);
  CHECK(waiting[0] > waiting[1]);
  CHECK(waiting[2] > waiting[1]);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].starts_with("rank 1 is slow: the others wait for it during "));
}

TEST_CASE("the slow rank is the one that waits least, if the others wait for it for long") {
  CHECK(FindSlowRank({}, 1).rank == -1);
  CHECK(FindSlowRank({0.5}, 1).rank == -1);
  CHECK(FindSlowRank({5.0, 4.5, 5.2}, 10).rank == -1);  // all wait: for the network
  CHECK(FindSlowRank({5.0, 0.5, 5.2, 0.4}, 10).rank == 3);
  CHECK(FindSlowRank({0.1, 3.1, 2.1}, 10).share == doctest::Approx(0.3));
}

TEST_CASE("a rank that ends by an error does not wait for the others, which notice it") {
  struct Failing final : TrainListener {
    void OnEpoch(const EpochEvent&) override { Throw(ErrorKind::kFileSystem, "the disk is full"); }
  };
  const TempDir data;
  WriteTable(data);
  for (const bool sync_batch_norm : {false, true}) {
    ThreadRanks ranks(2);
    std::vector<std::string> errors(2);
    std::vector<std::thread> threads;
    for (int r = 0; r < 2; ++r) {
      threads.emplace_back([&, r] {
        RunSpec spec;
        spec.symbol = NoisyNet();
        spec.sync_batch_norm = sync_batch_norm;
        spec.group = std::make_shared<ProcessGroup>(
            ranks.Opener(r), ProcessGroup::Options{.timeout_seconds = r == 0 ? 600.0 : 4.0});
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
}

// How a loss fails: in a pass it is NaN, or its gradient an error.
struct Failure {
  bool diverges = false;
  int pass = 3;
};

// In place of SoftmaxOutput: its gradients are 0.
class FailingLoss final : public Operator {
 public:
  explicit FailingLoss(Failure failure) : failure_(failure) {}
  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    const bool fails = ++passes_ == failure_.pass && failure_.diverges;
    std::fill_n(out.dptr<float>(), out.Size(),
                fails ? std::numeric_limits<float>::quiet_NaN() : 1.0f / 3);
  }
  void Backward(const BackwardArgs& args) override {
    if (passes_ == failure_.pass && !failure_.diverges)
      Throw(ErrorKind::kData, "the third gradient failed");
    const TBlob& gradient = args.in_grad[0];
    std::fill_n(gradient.dptr<float>(), gradient.Size(), 0.0f);
  }

 private:
  const Failure failure_;
  int passes_ = 0;
};

std::function<std::unique_ptr<Runtime>(const RunSpec&)> WithFailingLoss(Failure failure) {
  return [failure](const RunSpec&) {
    const auto registry = BuiltinOperators();
    registry->AddKernel({"SoftmaxOutput", DeviceType::kCPU, "failing", -1,
                         [failure](const OperatorProperty& property, const PlanRequest& request,
                                   Backend&) -> Expected<Plan, Refusal> {
                           Plan plan = PlainPlan(property, request);
                           plan.make = [failure] { return std::make_unique<FailingLoss>(failure); };
                           return plan;
                         }});
    RuntimeOptions options;
    options.threads = 2;
    return std::make_unique<Runtime>(options, registry);
  };
}

// What two ranks end with, of which one has a loss that fails.
struct Ending {
  std::string error;
  std::optional<RunEnd> end;
  bool failed = false;  // the group
};
std::vector<Ending> TrainWithFailingLoss(const TempDir& data, RunSpec spec, int failing,
                                         Failure failure, double timeout_of_other) {
  ThreadRanks ranks(2);
  std::vector<Ending> endings(2);
  std::vector<std::thread> threads;
  for (int r = 0; r < 2; ++r) {
    threads.emplace_back([&, r] {
      RunSpec own = spec;
      Ending& ending = endings[static_cast<size_t>(r)];
      if (r == failing) own.make_runtime = WithFailingLoss(failure);
      own.group = std::make_shared<ProcessGroup>(
          ranks.Opener(r),
          ProcessGroup::Options{.timeout_seconds = r == failing ? 600.0 : timeout_of_other});
      {
        Process process(data, own);
        TrainListener silent;
        try {
          process.trainer->Run(silent);
        } catch (const DivergedError& e) {
          ending.error = e.what();
          ending.end = process.trainer->result().end;
        } catch (const Error& e) {
          ending.error = e.what();
        }
      }
      ending.failed = own.group->failed();
      own.group->Abort(8);
    });
  }
  for (std::thread& thread : threads) thread.join();
  return endings;
}

TEST_CASE("a gradient that cannot be computed ends its rank at once, by its error") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  for (const bool sync_batch_norm : {false, true}) {
    spec.sync_batch_norm = sync_batch_norm;
    const auto endings = TrainWithFailingLoss(data, spec, 0, {.diverges = false}, 4);
    CHECK(endings[0].error.find("the third gradient failed") != std::string::npos);
    CHECK(endings[1].error.find("train.kvstore.timeout") != std::string::npos);
  }
}

TEST_CASE("a loss of one rank that is not finite ends all ranks together") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec;
  spec.symbol = NoisyNet();
  const auto end_together = [&](int pass) {
    const auto endings = TrainWithFailingLoss(data, spec, 1, {.diverges = true, .pass = pass}, 600);
    for (const Ending& ending : endings) {
      CHECK(ending.end == RunEnd::kDiverged);
      CHECK_FALSE(ending.failed);
      CHECK(ending.error.find("is not finite at step") != std::string::npos);
    }
    CHECK(endings[0].error.starts_with("on another rank the loss of 'softmax'"));
  };
  for (const int64_t grad_accum : {1, 2}) {
    for (const int64_t max_steps : {0, 3}) {
      spec.grad_accum = grad_accum;
      spec.max_steps = max_steps;
      end_together(3);
    }
  }
  // About the update after which the order of sending is planned.
  spec.grad_accum = 1;
  spec.max_steps = 0;
  for (const int pass : {4, 5, 6}) end_together(pass);
}

}  // namespace
}  // namespace mxtrain::test
