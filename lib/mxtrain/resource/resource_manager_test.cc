// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/resource/resource_manager.h"

#include <doctest/doctest.h>

#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "tests/support/fake_stream.h"

namespace mxtrain {
namespace {

const RunContext kRun{Context::cpu(), nullptr};

struct Fixture {
  std::unique_ptr<Backend> backend = NewCpuBackend(1);
  std::unique_ptr<Storage> storage =
      Storage::Create([this](Context) -> Backend& { return *backend; });
  ResourceManager manager{*storage, 7};
};

TEST_CASE_FIXTURE(Fixture, "every call draws in a new step; a seed begins again") {
  CHECK(manager.NextCall() == RandomState{7, 0});
  CHECK(manager.NextCall() == RandomState{7, 1});
  manager.Seed(9);
  CHECK(manager.seed() == 9);
  CHECK(manager.NextCall() == RandomState{9, 0});
  manager.Seed(9);
  CHECK(manager.NextCall() == RandomState{9, 0});
}

TEST_CASE_FIXTURE(Fixture, "a saved state continues where it was saved") {
  manager.NextCall();
  const RandomState saved = manager.State();
  const RandomState next = manager.NextCall();
  manager.Seed(1);
  manager.NextCall();
  manager.Restore(saved);
  CHECK(manager.NextCall() == next);
}

TEST_CASE_FIXTURE(Fixture, "an executor counts training passes, and begins again with a seed") {
  RandomSteps steps(manager);
  CHECK(steps.Next(true) == RandomState{7, 1});
  CHECK(steps.Next(false) == RandomState{7, 1});
  CHECK(steps.Next(true) == RandomState{7, 2});
  manager.Restore({7, 40});  // of calls, which it does not count
  CHECK(steps.step() == 2);
  manager.Seed(8);
  CHECK(steps.step() == 0);
  CHECK(steps.last() == RandomState{7, 2});  // a backward pass of before repeats its draws
  CHECK(steps.Next(true) == RandomState{8, 1});
  manager.Seed(8);
  steps.set_step(5);
  CHECK(steps.Next(true) == RandomState{8, 6});
}

TEST_CASE_FIXTURE(Fixture,
                  "operations that follow each other share one block, as large as needed") {
  void* first = nullptr;
  for (const int64_t bytes : {100, 5000, 300}) {
    const SpaceLease space = manager.TakeSpace(kRun);
    void* data = space->Get(bytes, "fc1");
    CHECK(reinterpret_cast<uintptr_t>(data) % 64 == 0);
    if (bytes == 5000) first = data;
    if (bytes == 300) CHECK(data == first);
  }
  const ResourceStats stats = manager.GetStats(kRun.ctx);
  REQUIRE(stats.spaces.size() == 1);
  CHECK(stats.spaces[0].bytes == 5000);
  CHECK(stats.spaces[0].taken == 3);
  CHECK(stats.bytes == 5000);
  CHECK(stats.peak == 5000);
  CHECK(stats.taken == 3);
  CHECK(stats.growths == 2);
  CHECK(manager.devices() == std::vector<Context>{kRun.ctx});
  CHECK(manager.GetStats(Context::cpu(1)).spaces.empty());
}

TEST_CASE_FIXTURE(Fixture, "operations at the same time have blocks of their own") {
  {
    const SpaceLease a = manager.TakeSpace(kRun), b = manager.TakeSpace(kRun);
    CHECK(a->Get(64, "a") != b->Get(128, "b"));
    const SpaceLease other = manager.TakeSpace({Context::cpu(1), nullptr});
    CHECK(other->Get(0, "c") == nullptr);
    CHECK_THROWS_AS(other->Get(-1, "c"), Error);
  }
  CHECK(manager.GetStats(Context::cpu()).spaces.size() == 2);
  CHECK(manager.GetStats(Context::cpu()).bytes == 192);
  CHECK(manager.GetStats(Context::cpu(1)).bytes == 0);
}

TEST_CASE_FIXTURE(Fixture, "threads write to their blocks without meeting") {
  constexpr int kThreads = 4;
  std::vector<std::thread> threads;
  std::vector<int> wrong(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int round = 1; round <= 300; ++round) {
        const SpaceLease space = manager.TakeSpace(kRun);
        const int64_t n = 1 + round % 50;
        int* data = static_cast<int*>(space->Get(n * 4, "work"));
        for (int64_t i = 0; i < n; ++i) data[i] = t;
        for (int64_t i = 0; i < n; ++i) wrong[static_cast<size_t>(t)] += data[i] != t;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == std::vector<int>(kThreads));
  CHECK(manager.GetStats(kRun.ctx).spaces.size() <= kThreads);
  CHECK(manager.GetStats(kRun.ctx).taken == 300 * kThreads);
}

TEST_CASE_FIXTURE(Fixture, "idle blocks can be returned to the storage, taken ones cannot") {
  const SpaceLease taken = manager.TakeSpace(kRun);
  taken->Get(1024, "a");
  manager.TakeSpace(kRun)->Get(2048, "b");
  manager.TakeSpace({Context::cpu(1), nullptr})->Get(512, "of another device");
  CHECK(storage->GetStats(kRun.ctx).in_use == 3072);
  manager.ReleaseIdle(kRun.ctx);
  manager.ReleaseIdle(Context::gpu());  // was never used
  CHECK(manager.GetStats(Context::cpu(1)).bytes == 512);
  CHECK(storage->GetStats(kRun.ctx).in_use == 1024);
  CHECK(manager.GetStats(kRun.ctx).bytes == 1024);
  CHECK(manager.GetStats(kRun.ctx).peak == 3072);
  CHECK(manager.TakeSpace(kRun)->Get(10, "b") != nullptr);
}

TEST_CASE_FIXTURE(Fixture, "the block of a failed stream is kept, the others are released") {
  test::FakeStream broken, working;
  const RunContext on_broken{kRun.ctx, &broken}, on_working{kRun.ctx, &working};
  manager.TakeSpace(on_broken)->Get(1024, "a");
  manager.TakeSpace(on_working)->Get(2048, "b");
  broken.Break("unplugged");
  manager.ReleaseIdle(kRun.ctx);
  CHECK(manager.GetStats(kRun.ctx).bytes == 1024);
  CHECK(storage->GetStats(kRun.ctx).in_use == 1024);
  // Both spaces are idle again.
  CHECK(manager.TakeSpace(on_broken)->Get(64, "a") != nullptr);
  CHECK(manager.TakeSpace(on_working)->Get(64, "b") != nullptr);
  CHECK(manager.GetStats(kRun.ctx).spaces.size() == 2);
}

TEST_CASE_FIXTURE(Fixture, "runs with random numbers are counted by device") {
  manager.CountRandomRun(Context::cpu());
  manager.CountRandomRun(Context::cpu());
  manager.CountRandomRun(Context::gpu());
  CHECK(manager.GetStats(Context::cpu()).random_runs == 2);
  CHECK(manager.GetStats(Context::gpu()).random_runs == 1);
}

}  // namespace
}  // namespace mxtrain
