// SPDX-License-Identifier: Apache-2.0
// Training by ranks that do not wait for each other (dist_async): threads, each with a process of
// its own.
#include <doctest/doctest.h>

#include <chrono>
#include <latch>
#include <limits>
#include <mutex>
#include <numeric>
#include <thread>

#include "mxtrain/operator/plans.h"
#include "mxtrain/train/internal/best_epochs.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/training_run.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kParameters = 4;  // of QuietNet

RunSpec Apart(int64_t staleness = 0) {
  RunSpec spec;
  spec.symbol = QuietNet();
  spec.kvstore = "dist_async";
  spec.dist.staleness = staleness;
  return spec;
}

// What each rank's run gives.
struct Ended {
  TrainResult result;
  std::vector<EpochEvent> epochs;
  int saves = 0;
};
using Listener = std::function<void(int rank, const StepEvent& step, std::atomic<int>* stop)>;

class Recording final : public TrainListener {
 public:
  Recording(int rank, const Listener& on_step, std::atomic<int>* stop, Ended* ended)
      : rank_(rank), on_step_(on_step), stop_(stop), ended_(ended) {}
  void OnStep(const StepEvent& e) override {
    if (on_step_) on_step_(rank_, e, stop_);
  }
  void OnEpoch(const EpochEvent& e) override { ended_->epochs.push_back(e); }
  void OnSave(const SaveEvent&) override { ++ended_->saves; }

 private:
  const int rank_;
  const Listener& on_step_;
  std::atomic<int>* const stop_;
  Ended* const ended_;
};

// `on_step`: called by every rank after each of its steps.
std::vector<Ended> Train(int size, const TempDir& data, const RunSpec& spec,
                         const Listener& on_step = {}, bool resume = false) {
  std::vector<Ended> ended(static_cast<size_t>(size));
  RunRanks(size, [&](const std::shared_ptr<ProcessGroup>& group) {
    RunSpec own = spec;
    own.group = group;
    own.report_steps = 1;
    Process process(data, own);
    std::vector<std::string> warnings;
    if (resume)
      process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
    group->Barrier();
    std::atomic<int> stop{0};
    Ended& mine = ended[static_cast<size_t>(group->rank())];
    Recording recording(group->rank(), on_step, &stop, &mine);
    mine.result = process.trainer->Run(recording, &stop);
    group->Barrier();  // the last save is complete
  });
  for (const Ended& other : ended) {
    CHECK(other.result.end == ended[0].result.end);
    CHECK(other.result.steps == ended[0].result.steps);
    REQUIRE(other.epochs.size() == ended[0].epochs.size());
    for (size_t e = 0; e < other.epochs.size(); ++e)
      CheckSameEpoch(other.epochs[e], ended[0].epochs[e]);
    if (&other != &ended[0]) CHECK(other.saves == 0);
  }
  return ended;
}

int64_t Sum(const std::vector<int64_t>& counts) {
  return std::accumulate(counts.begin(), counts.end(), int64_t{0});
}

TEST_CASE("one rank of dist_async gives the checkpoint of a run without ranks, byte for byte") {
  const TempDir data, folder;
  WriteTable(data);
  for (const bool adam : {false, true}) {
    RunSpec spec = Apart();
    spec.symbol = NoisyNet();
    spec.grad_accum = adam ? 2 : 1;
    if (adam) spec.optimizer = {"adam", {{"lr", "0.01"}}};
    spec.folder = folder.path("checkpoints");
    Train(1, data, spec);
    const std::string apart = ReadFile(CheckpointFolder(spec.folder).File("last"));
    spec.kvstore = "local";
    CHECK(RunWhole(data, spec).last == apart);
  }
}

TEST_CASE("ranks that do not wait learn as well, and count the staleness of each update") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Apart();
  spec.epochs = 8;
  spec.lr_schedule = {"constant", {}};
  spec.optimizer = {"sgd", {{"lr", "0.05"}, {"momentum", "0.5"}}};
  spec.kvstore = "local";
  const double of_one = FindValue(RunWhole(data, spec).epochs.back().val, "accuracy").value();
  CHECK(of_one > 0.9);
  spec.kvstore = "dist_async";
  for (int size : {2, 4}) {
    CAPTURE(size);
    const std::vector<Ended> ended = Train(size, data, spec);
    CHECK(ended[0].result.end == RunEnd::kComplete);
    CHECK(FindValue(ended[0].epochs.back().val, "accuracy").value() > 0.9);
    for (const EpochEvent& e : ended[0].epochs) {
      CHECK(e.staleness.size() <= static_cast<size_t>(4 * (size - 1) + 1));
      CHECK(e.staleness.back() > 0);
      CHECK(Sum(e.staleness) == 5 * size * kParameters);
    }
  }
}

TEST_CASE("a slow rank keeps no other waiting until the end of the epoch") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Apart(/*staleness=*/40);
  spec.batch = 4;  // 11 steps
  std::latch slow_waits(1), other_ends(1);
  const std::vector<Ended> ended =
      Train(2, data, spec, [&](int rank, const StepEvent& e, std::atomic<int>*) {
        if (e.epoch > 0) return;
        // The slow one goes on when the other has made all of its steps, most of them meanwhile.
        if (rank == 0 && e.step_in_epoch == 1) slow_waits.wait();
        if (rank == 0 && e.step_in_epoch == 11) other_ends.count_down();
        if (rank == 1 && e.step_in_epoch == 1) {
          slow_waits.count_down();
          other_ends.wait();
          std::this_thread::sleep_for(std::chrono::milliseconds(100));
        }
      });
  CHECK(ended[0].result.steps == 33);
  const EpochEvent& first = ended[0].epochs[0];
  REQUIRE(first.waiting.size() == 2);
  CHECK(first.waiting[0] > 0.09);
  CHECK(first.waiting[0] > first.waiting[1]);
  CHECK(first.seconds > first.waiting[0]);  // an epoch lasts until all have ended it
  CHECK(first.staleness.size() > 8);
}

TEST_CASE("a stop of one rank ends all at one place, and any number of ranks continue") {
  const TempDir data;
  WriteTable(data);
  RunSpec spec = Apart(/*staleness=*/40);
  spec.batch = 4;
  for (const bool waits : {false, true}) {
    CAPTURE(waits);
    const TempDir folder;
    spec.folder = folder.path("checkpoints");
    std::latch asked(1);
    // Rank 1 is asked to stop, or rank 0 while it waits for the slow rank 1 at the epoch's end.
    const std::vector<Ended> ended =
        Train(2, data, spec, [&](int rank, const StepEvent& e, std::atomic<int>* stop) {
          if (!waits && rank == 1 && e.step == 4) *stop = 1;
          if (waits && rank == 0 && e.step == 11) {
            std::thread([stop, &asked] {
              std::this_thread::sleep_for(std::chrono::milliseconds(100));
              *stop = 1;
              asked.count_down();
            }).detach();
          }
          if (waits && rank == 1 && e.step > 5) {
            asked.wait();
            std::this_thread::sleep_for(std::chrono::milliseconds(100));
          }
        });
    CHECK(ended[0].result.end == RunEnd::kStopped);
    CHECK(ended[0].saves == 1);
    CHECK(ended[0].result.steps > 0);
    CHECK(ended[0].result.steps < 11);
    // Others continue it: as many, more, in step, and one process.
    int64_t epochs = 3;
    for (const auto& [size, kvstore] :
         {std::pair{2, "dist_async"}, {4, "dist_async"}, {4, "dist_sync"}, {1, "dist_async"}}) {
      RunSpec next = spec;
      next.kvstore = kvstore;
      next.epochs = epochs++;
      const std::vector<Ended> more = Train(size, data, next, {}, /*resume=*/true);
      CHECK(more[0].result.end == RunEnd::kComplete);
      CHECK(more[0].result.steps == next.epochs * 11);
    }
    RunSpec alone = spec;
    alone.kvstore = "local";
    alone.epochs = epochs;
    Process process(data, alone);
    std::vector<std::string> warnings;
    process.trainer->Resume(CheckpointFolder(spec.folder).LoadLast(*process.runtime, &warnings));
    Log log;
    CHECK(process.trainer->Run(log).end == RunEnd::kComplete);
    CHECK(FindValue(log.epochs.back().val, "accuracy").value() > 0.6);
  }
}

TEST_CASE("ranks that do not wait save on request and after so many steps, and go on") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = Apart();
  spec.batch = 4;
  spec.epochs = 2;
  spec.folder = folder.path("checkpoints");
  const int without = Train(2, data, spec)[0].saves;
  std::vector<Ended> ended =
      Train(2, data, spec, [](int rank, const StepEvent& e, std::atomic<int>* stop) {
        if (rank == 1 && e.step == 5) *stop = 2;
      });
  CHECK(ended[0].result.end == RunEnd::kComplete);
  CHECK(ended[0].saves == without + 1);
  CHECK(Sum(ended[0].epochs[0].staleness) == 11 * 2 * kParameters);
  spec.save_every_steps = 4;  // 4, 8, 12, 16, 20
  ended = Train(2, data, spec);
  CHECK(ended[0].result.end == RunEnd::kComplete);
  CHECK(ended[0].saves == without + 5);
}

TEST_CASE("steps of one rank after a save are saved by a stop") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = Apart(/*staleness=*/40);
  spec.batch = 4;
  spec.folder = folder.path("checkpoints");
  std::latch epoch_ends(1);
  // Rank 0 has ended its 11 steps. A save after 5 steps of rank 1, and a stop after 6, are both at
  // step 8.
  const std::vector<Ended> ended =
      Train(2, data, spec, [&](int rank, const StepEvent& e, std::atomic<int>* stop) {
        if (rank == 0 && e.step == 11) epoch_ends.count_down();
        if (rank == 1 && e.step == 5) {
          epoch_ends.wait();
          *stop = 2;
        }
        if (rank == 1 && e.step == 6) *stop = 1;
      });
  CHECK(ended[0].result.end == RunEnd::kStopped);
  CHECK(ended[0].result.steps == 8);
  CHECK(ended[0].saves == 2);
}

TEST_CASE("ranks that do not wait end at a time limit with a whole result") {
  const TempDir data, folder;
  WriteTable(data);
  RunSpec spec = Apart();
  spec.batch = 4;
  spec.epochs = 1000;
  spec.time_limit_seconds = 0.5;
  spec.folder = folder.path("checkpoints");
  const std::vector<Ended> ended = Train(
      3, data,
      [&] {
        spec.batch = 6;
        return spec;
      }(),
      [](int rank, const StepEvent&, std::atomic<int>*) {
        std::this_thread::sleep_for(std::chrono::milliseconds(rank == 2 ? 30 : 3));
      });
  CHECK(ended[0].result.end == RunEnd::kTimeLimit);
  CHECK_FALSE(ended[0].epochs.empty());
}

// In place of SoftmaxOutput: in the third pass the loss is NaN.
class Diverging final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    std::fill_n(out.dptr<float>(), out.Size(),
                ++passes_ == 3 ? std::numeric_limits<float>::quiet_NaN() : 1.0F / 3);
  }
  void Backward(const BackwardArgs& args) override {
    const TBlob& gradient = args.in_grad[0];
    std::fill_n(gradient.dptr<float>(), gradient.Size(), 0.0F);
  }

 private:
  int passes_ = 0;
};

TEST_CASE("the step of a rank that does not wait may fail") {
  const TempDir data;
  WriteTable(data);
  std::vector<std::string> errors(2);
  std::vector<RunEnd> ends(2);
  RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
    RunSpec spec = Apart();
    spec.group = group;
    if (group->rank() == 1) {
      spec.make_runtime = [](const RunSpec&) {
        const auto registry = BuiltinOperators();
        registry->AddKernel({"SoftmaxOutput", DeviceType::kCPU, "failing", -1,
                             [](const OperatorProperty& property, const PlanRequest& request,
                                Backend&) -> Expected<Plan, Refusal> {
                               Plan plan = PlainPlan(property, request);
                               plan.make = [] { return std::make_unique<Diverging>(); };
                               return plan;
                             }});
        RuntimeOptions options;
        options.threads = 2;
        return std::make_unique<Runtime>(options, registry);
      };
    }
    Process process(data, spec);
    TrainListener silent;
    try {
      process.trainer->Run(silent);
    } catch (const DivergedError& e) {
      errors[static_cast<size_t>(group->rank())] = e.what();
      ends[static_cast<size_t>(group->rank())] = process.trainer->result().end;
    }
    CHECK_FALSE(group->failed());
  });
  CHECK(errors[0].starts_with("on another rank the loss of 'softmax'"));
  CHECK(errors[1].find("is not finite at step 3") != std::string::npos);
  CHECK(ends == std::vector{RunEnd::kDiverged, RunEnd::kDiverged});
}

TEST_CASE("dist_async refuses what needs all gradients of a step") {
  const TempDir data;
  WriteTable(data);
  const auto train = [&](const std::function<void(RunSpec*)>& change) {
    RunRanks(2, [&](const std::shared_ptr<ProcessGroup>& group) {
      RunSpec spec = Apart();
      spec.group = group;
      change(&spec);
      Process process(data, spec);
    });
  };
  train([](RunSpec*) {});
  CHECK_THROWS_WITH(train([](RunSpec* spec) { spec->clip_norm = 1; }),
                    doctest::Contains("global norm"));
  CHECK_THROWS_WITH(train([](RunSpec* spec) { spec->average_decay = 0.9; }),
                    doctest::Contains("average of the weights"));
  CHECK_THROWS_WITH(train([](RunSpec* spec) { spec->amp = DType::kFloat16; }),
                    doctest::Contains("float16"));
}

}  // namespace
}  // namespace mxtrain::test
