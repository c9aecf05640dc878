// SPDX-License-Identifier: Apache-2.0
// dist_async between ranks that are threads, each with a runtime of its own.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <latch>
#include <numeric>
#include <random>
#include <thread>

#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/kvstore/rounds.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::FloatVector;
using test::RunRanks;

// Such that some keys travel together and some alone.
const std::vector<int64_t> kAsyncSizes = {40, 17, 1 << 18, 1000, 31, (1 << 18) + 7, 64, 23};

// One rank's store, weights and gradients.
struct Worker {
  std::shared_ptr<ProcessGroup> group;
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  std::unique_ptr<KVStore> store;
  std::vector<NDArray> weights, grads;

  explicit Worker(const std::shared_ptr<ProcessGroup>& of, int64_t staleness = 0) : group(of) {
    store = KVStore::Create(runtime, "dist_async", {}, {}, group, {.staleness = staleness});
    for (size_t k = 0; k < kAsyncSizes.size(); ++k) {
      const float first = group->rank() == 0 ? static_cast<float>(k) : -1;
      weights.push_back(
          NDArray::FromVector(runtime, TShape({kAsyncSizes[k]}),
                              FloatVector(static_cast<size_t>(kAsyncSizes[k]), first)));
      grads.push_back(NDArray::Zeros(runtime, TShape({kAsyncSizes[k]})));
      store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
    }
  }
  Rounds& rounds() { return *store->rounds(); }

  // value += gradient
  void AddUp() {
    store->SetUpdater([](std::span<const KVStore::KeyUpdate> keys) {
      for (const KVStore::KeyUpdate& key : keys)
        InvokeInto("elemwise_add", std::vector{key.local, key.received}, std::span(&key.local, 1));
    });
  }
  // Pushes all gradients and waits for the answers.
  void Step() {
    std::vector<KVStore::KeySums> sums;
    for (int k = static_cast<int>(kAsyncSizes.size()); k-- > 0;)
      sums.push_back({k, store->Sum(k, {&grads[static_cast<size_t>(k)], 1}, -k), -k});
    store->Update(sums);
    for (const NDArray& weight : weights) weight.WaitToRead();
  }
  void EndRound() {
    rounds().Rest(false);
    while (!rounds().AllRest()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    group->Barrier();
    rounds().End();
  }
};

TEST_CASE("dist_async applies every gradient once, and all ranks get the values") {
  constexpr int kSteps = 10;
  for (int ranks : {1, 2, 3, 4}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Worker worker(group);
      worker.AddUp();
      CHECK(worker.store->rank() == group->rank());
      CHECK(worker.store->num_workers() == ranks);
      int64_t elements_held = 0;
      for (int k = 0; k < static_cast<int>(kAsyncSizes.size()); ++k) {
        CHECK(worker.store->OwnerOf(k).has_value() == (ranks > 1));
        if (worker.store->OwnerOf(k).value_or(0) == group->rank())
          elements_held += kAsyncSizes[static_cast<size_t>(k)];
      }
      CHECK(elements_held > 0);
      for (int round = 0; round < 2; ++round) {
        worker.rounds().Begin(0);
        for (int step = 0; step < kSteps; ++step) {
          for (size_t k = 0; k < kAsyncSizes.size(); ++k)
            worker.grads[k].Fill(static_cast<double>(group->rank() + 1) *
                                 static_cast<double>(k + 1));
          worker.Step();
        }
        worker.EndRound();
        for (size_t k = 0; k < kAsyncSizes.size(); ++k) {
          const auto all = static_cast<float>((round + 1) * kSteps * ranks * (ranks + 1) / 2);
          const float expected = static_cast<float>(k) + all * static_cast<float>(k + 1);
          CHECK(worker.weights[k].ToVector() ==
                FloatVector(static_cast<size_t>(kAsyncSizes[k]), expected));
        }
      }
      group->Barrier();
    });
  }
}

TEST_CASE("dist_async sums the workers of each rank, and they get the values") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const std::vector<Context> workers(3, Context::cpu());
    const auto store = KVStore::Create(runtime, "dist_async", workers, {}, group);
    std::vector<NDArray> weights, grads;
    for (int w = 0; w < 3; ++w) {
      weights.push_back(NDArray::FromVector(runtime, TShape({2}), {float(w), float(w)}));
      grads.push_back(NDArray::FromVector(runtime, TShape({2}), {float(w + 1), 1}));
    }
    store->Init(4, weights, /*share=*/true);
    store->SetUpdater([](std::span<const KVStore::KeyUpdate> keys) {
      InvokeInto("elemwise_add", std::vector{keys[0].local, keys[0].received},
                 std::span(&keys[0].local, 1));
    });
    Rounds& rounds = *store->rounds();
    rounds.Begin(0);
    store->Push(4, grads, 0);
    store->Pull(4, weights, 0);
    runtime.engine().WaitForAll();
    rounds.Rest(false);
    while (!rounds.AllRest()) std::this_thread::yield();
    group->Barrier();
    rounds.End();
    for (const NDArray& weight : weights) CHECK(weight.ToVector() == FloatVector{12, 6});
  });
}

TEST_CASE("a rank that does not push delays the others by nothing, as far as the bound allows") {
  constexpr int kRanks = 4, kSteps = 10;
  std::latch others(kRanks - 1);
  RunRanks(kRanks, [&](const std::shared_ptr<ProcessGroup>& group) {
    Worker worker(group, /*staleness=*/kSteps * (kRanks - 1));
    worker.AddUp();
    worker.rounds().Begin(0);
    // The last rank begins when the others have made all of their steps.
    if (group->rank() == kRanks - 1) others.wait();
    for (int step = 0; step < kSteps; ++step) {
      for (NDArray& grad : worker.grads) grad.Fill(1);
      worker.Step();
    }
    if (group->rank() < kRanks - 1) others.count_down();
    worker.EndRound();
    for (size_t k = 0; k < kAsyncSizes.size(); ++k)
      CHECK(worker.weights[k].ToVector()[0] == static_cast<float>(k) + kRanks * kSteps);
    int64_t most = 0;
    const std::vector<int64_t> staleness = worker.rounds().TakeStaleness();
    for (size_t s = 0; s < staleness.size(); ++s) {
      if (staleness[s] > 0) most = static_cast<int64_t>(s);
    }
    CHECK(most == kSteps * (kRanks - 1));  // of the last rank's first update
  });
}

TEST_CASE("under random delays no update is staler than the bound, and each is counted") {
  // What a gradient says of itself: 1, the updates that its value had seen, and 1 at 2 + rank.
  struct Count {
    std::mutex mutex;
    std::vector<int64_t> by_staleness;
  };
  for (const auto& [ranks, bound, seed] :
       {std::tuple{2, 1, 1U}, {2, 3, 2U}, {3, 2, 3U}, {3, 4, 4U}, {4, 3, 5U}, {4, 12, 6U}}) {
    CAPTURE(ranks);
    CAPTURE(bound);
    RunRanks(ranks, [ranks = ranks, bound = bound,
                     seed = seed](const std::shared_ptr<ProcessGroup>& group) {
      const auto rank = static_cast<size_t>(group->rank());
      Worker worker(group, bound);
      for (NDArray& weight : worker.weights) weight.Fill(0);
      const auto count = std::make_shared<Count>();
      count->by_staleness.resize(100);
      std::mt19937 random(seed * 100 + static_cast<unsigned>(rank));
      std::atomic<int64_t> updates_passed{0};
      worker.rounds().SetUpdater(
          [&, count](std::span<const KVStore::KeyUpdate> keys, int64_t updates, int) {
            updates_passed += std::ssize(keys);
            for (const KVStore::KeyUpdate& key : keys) {
              const engine::VarHandle read = key.received.var(), write = key.local.var();
              worker.runtime.engine().PushSync(
                  [count, key_received = key.received, key_local = key.local, updates](RunContext) {
                    const float* gradient = key_received.data().dptr<float>();
                    float* value = key_local.data().dptr<float>();
                    const std::lock_guard lock(count->mutex);
                    CHECK(static_cast<int64_t>(value[0]) == updates);
                    ++count->by_staleness.at(static_cast<size_t>(value[0] - gradient[1]));
                    value[0] += 1;
                    for (int i = 2; i < 8; ++i) value[i] += gradient[i];
                  },
                  {&read, 1}, {&write, 1}, {.name = "count"});
            }
          });
      constexpr int kRounds = 2, kSteps = 15;
      std::vector<int64_t> counted(static_cast<size_t>(bound) + 1);
      for (int round = 0; round < kRounds; ++round) {
        worker.rounds().Begin(0);
        // Ranks make different numbers of steps, and one of them is slow.
        const int steps = kSteps + static_cast<int>(random() % 10);
        const unsigned slow = seed % static_cast<unsigned>(ranks) == rank ? 6 : 1;
        for (int step = 0; step < steps; ++step) {
          for (size_t k = 0; k < kAsyncSizes.size(); ++k) {
            FloatVector gradient(static_cast<size_t>(kAsyncSizes[k]));
            gradient[0] = 1;
            gradient[1] = worker.weights[k].ToVector()[0];
            gradient[2 + rank] = 1;
            worker.grads[k].CopyFromHost(gradient.data(), kAsyncSizes[k] * 4);
          }
          std::this_thread::sleep_for(std::chrono::microseconds(slow * (random() % 1000)));
          const FloatVector before = worker.weights[3].ToVector();
          worker.Step();
          const FloatVector after = worker.weights[3].ToVector();
          CHECK(after[0] > before[0]);
          CHECK(after[2 + rank] == before[2 + rank] + 1);  // a rank reads its own updates
        }
        worker.EndRound();
        const std::vector<int64_t> staleness = worker.rounds().TakeStaleness();
        REQUIRE(staleness.size() == counted.size());  // none is older
        for (size_t s = 0; s < counted.size(); ++s) counted[s] += staleness[s];
      }
      worker.runtime.engine().WaitForAll();
      const std::lock_guard lock(count->mutex);
      int64_t all = 0;
      for (size_t s = 0; s < count->by_staleness.size(); ++s) {
        all += count->by_staleness[s];
        CHECK(count->by_staleness[s] == (s < counted.size() ? counted[s] : 0));
      }
      CHECK(all == updates_passed);
      CHECK(all >= kRounds * kSteps * ranks);
      group->Barrier();
    });
  }
}

TEST_CASE("a rank that waits for others learns of their call") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    Worker worker(group);
    worker.AddUp();
    worker.rounds().Begin(0);
    worker.Step();
    if (group->rank() == 1) {
      CHECK_FALSE(worker.rounds().called());
      worker.rounds().Rest(false);
      worker.rounds().Rest(true);
    } else {
      while (!worker.rounds().called()) worker.Step();
    }
    worker.EndRound();
    worker.rounds().Begin(0);
    CHECK_FALSE(worker.rounds().called());
    worker.EndRound();
  });
}

TEST_CASE("an update that fails ends all ranks with an error") {
  for (int failing : {0, 1}) {
    std::vector<std::string> errors(2);
    CHECK_THROWS_AS(
        RunRanks(2,
                 [&](const std::shared_ptr<ProcessGroup>& group) {
                   Worker worker(group);
                   worker.AddUp();
                   if (group->rank() == failing) {
                     worker.store->SetUpdater([&](std::span<const KVStore::KeyUpdate> keys) {
                       const engine::VarHandle write = keys[0].local.var();
                       worker.runtime.engine().PushSync(
                           [](RunContext) { Throw(ErrorKind::kMemory, "no memory"); }, {},
                           {&write, 1}, {.name = "failing"});
                     });
                   }
                   worker.rounds().Begin(0);
                   try {
                     worker.Step();
                     worker.Step();
                   } catch (const Error& e) {
                     errors[static_cast<size_t>(group->rank())] = e.what();
                     throw;
                   }
                 },
                 {.timeout_seconds = 1}),
        Error);
    const std::string& of_other = errors[static_cast<size_t>(1 - failing)];
    CHECK(of_other.find("train.kvstore.timeout") != std::string::npos);
    CHECK(errors[static_cast<size_t>(failing)].find("could not update") != std::string::npos);
  }
}

TEST_CASE("a rank that rests waits for those that show life, and for no others") {
  for (const bool shows_life : {true, false}) {
    CAPTURE(shows_life);
    const auto run = [&] {
      RunRanks(2,
               [&](const std::shared_ptr<ProcessGroup>& group) {
                 Worker worker(group);
                 worker.rounds().Begin(0);
                 for (int i = 0; group->rank() == 1 && i < 300; ++i) {
                   if (shows_life) worker.rounds().ShowLife();
                   std::this_thread::sleep_for(std::chrono::milliseconds(10));
                 }
                 worker.EndRound();
               },
               {.timeout_seconds = 1});
    };
    if (shows_life) {
      run();
    } else {
      CHECK_THROWS_WITH(run(), doctest::Contains("rank 1 ended or does not answer"));
    }
  }
}

TEST_CASE("a stop that comes during a long rest leaves the others time to end") {
  std::atomic<int> stop{0};
  RunRanks(2,
           [&](const std::shared_ptr<ProcessGroup>& group) {
             Worker worker(group);
             worker.rounds().Begin(0);
             if (group->rank() == 1) {
               std::this_thread::sleep_for(std::chrono::milliseconds(1500));
               stop = 1;
               std::this_thread::sleep_for(std::chrono::milliseconds(300));
             }
             worker.EndRound();
           },
           {.timeout_seconds = 600, .stop = &stop, .stop_seconds = 1});
}

// `rests`: rank 0 has ended its steps.
void LoseARank(bool rests) {
  test::ThreadRanks ranks(3);
  std::vector<std::string> errors(3);
  std::vector<std::thread> threads;
  std::latch begun(3), ended(2);
  for (int r = 0; r < 3; ++r) {
    threads.emplace_back([&, r] {
      const auto group = std::make_shared<ProcessGroup>(
          ranks.Opener(r), ProcessGroup::Options{.timeout_seconds = 2});
      {
        Worker worker(group);
        worker.AddUp();
        worker.rounds().Begin(0);
        begun.arrive_and_wait();
        if (r == 2) {
          std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the notice of rank 0
          ranks.Lose(2);
          ended.wait();
          group->Fail("lost");
        } else {
          try {
            if (rests && r == 0) worker.EndRound();
            while (true) worker.Step();
          } catch (const Error& e) {
            errors[static_cast<size_t>(r)] = e.what();
            CHECK(e.kind() == kRankLost);
          }
          ended.count_down();
        }
      }
      group->Abort(10);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t r : {0, 1}) {
    CAPTURE(errors[r]);
    CHECK(errors[r].find(": rank 2 ended or does not answer") != std::string::npos);
  }
}

TEST_CASE("a rank that is lost is named by those that wait for its answers, or rest") {
  LoseARank(/*rests=*/false);
  LoseARank(/*rests=*/true);
}

TEST_CASE("dist_async refuses what it does not have") {
  RunRanks(3, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const auto create = [&](const DistOptions& options) {
      KVStore::Create(runtime, "dist_async", {}, {}, group, options);
    };
    CHECK_THROWS_WITH(create({.staleness = 1}), doctest::Contains("set at least that"));
    CHECK_THROWS_WITH(create({.shard_states = true}), doctest::Contains("dist_sync"));
    CHECK_THROWS_WITH(create({.wire = DistOptions::Wire::kTwoBit}),
                      doctest::Contains("compressed"));
    create({.staleness = 2});
    RuntimeOptions naive;
    naive.engine = "naive";
    Runtime one_by_one(naive, BuiltinOperators());
    CHECK_THROWS_WITH(KVStore::Create(one_by_one, "dist_async", {}, {}, group),
                      doctest::Contains("needs the engine 'threaded'"));
    group->Barrier();
  });
}

}  // namespace
}  // namespace mxtrain
