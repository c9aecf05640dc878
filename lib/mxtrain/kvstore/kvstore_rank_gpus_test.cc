// SPDX-License-Identifier: Apache-2.0
// dist_device_sync on fake GPUs of ranks that are threads, each with a runtime of its own.
#include <doctest/doctest.h>

#include <chrono>
#include <future>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/kvstore.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_rank_gpus.h"
#include "tests/support/thread_ranks.h"

namespace mxtrain {
namespace {

using Group = std::shared_ptr<ProcessGroup>;
using test::ErrorsOf;

constexpr const char* kType = "dist_device_sync";

std::vector<Context> Gpus(int count) {
  std::vector<Context> gpus;
  for (int i = 0; i < count; ++i) gpus.push_back(Context::gpu(i));
  return gpus;
}

// An array on each of the GPUs, all elements plus 10 times the number of the GPU among all ranks'.
std::vector<NDArray> OnEachRanked(Runtime& runtime, const std::vector<Context>& gpus, int first,
                                  const std::vector<float>& values) {
  std::vector<NDArray> arrays;
  for (size_t d = 0; d < gpus.size(); ++d) {
    std::vector<float> own = values;
    for (float& value : own) value += 10 * static_cast<float>(first + static_cast<int>(d));
    arrays.push_back(
        NDArray::FromVector(runtime, TShape{static_cast<int64_t>(own.size())}, own, gpus[d]));
  }
  return arrays;
}

std::unique_ptr<KVStore> NewStore(Runtime& runtime, const std::vector<Context>& gpus,
                                  const Group& group, const DistOptions& options = {}) {
  return KVStore::Create(runtime, kType, gpus, test::FakeRankCommunicators(group), group, options);
}

TEST_CASE("gradients are summed over the GPUs of all ranks, and every GPU keeps rank 0's value") {
  // GPUs of each rank.
  for (const std::vector<int>& counts :
       {std::vector{1}, std::vector{1, 1}, std::vector{2, 2}, std::vector{2, 1, 2}}) {
    CAPTURE(counts.size());
    const int all = std::accumulate(counts.begin(), counts.end(), 0);
    test::RunRanks(static_cast<int>(counts.size()), [&](const Group& group) {
      const auto at = counts.begin() + group->rank();
      const int first = std::accumulate(counts.begin(), at, 0);
      const std::vector<Context> gpus = Gpus(*at);
      const auto runtime = test::NewFakeGpuRuntime();
      const auto store = NewStore(*runtime, gpus, group);
      CHECK(store->rank() == group->rank());
      CHECK(store->num_workers() == group->size());
      store->Init(3, OnEachRanked(*runtime, gpus, first, {1, 2, 3}), /*share=*/true);
      REQUIRE(store->Values(3).size() == gpus.size());
      for (const NDArray& value : store->Values(3))
        CHECK(value.ToVector() == std::vector<float>{1, 2, 3});
      const float tens = 10 * static_cast<float>(all * (all - 1)) / 2, n = static_cast<float>(all);
      for (int step = 0; step < 5; ++step) {
        const auto s = static_cast<float>(step);
        const std::vector<NDArray> grads = OnEachRanked(*runtime, gpus, first, {s, -1, 0.5F});
        store->Push(3, grads, 0);  // without an updater the sum becomes the value
        for (const NDArray& value : store->Values(3)) {
          CHECK(value.ToVector() == std::vector<float>{n * s + tens, -n + tens, 0.5F * n + tens});
        }
      }
      store->Barrier();
    });
  }
}

// Keys whose gradients become ready in another order on each rank, with other priorities.
TEST_CASE("sums are issued in the order of the pushes, whatever is ready first") {
  for (const bool in_buckets : {false, true}) {
    test::RunRanks(2, [&](const Group& group) {
      constexpr int kKeys = 12;
      const std::vector<Context> gpus = Gpus(1);
      const auto runtime = test::NewFakeGpuRuntime();
      const auto store = NewStore(*runtime, gpus, group);
      for (int key = 0; key < kKeys; ++key) {
        // Of different lengths, so that sums which meet in another order are noticed.
        const std::vector<float> zeros(static_cast<size_t>(key + 1));
        store->Init(key, OnEachRanked(*runtime, gpus, 0, zeros), /*share=*/true);
      }
      if (in_buckets) {
        std::vector<std::vector<int>> buckets;
        for (int key = kKeys; key > 0; key -= 3) buckets.push_back({key - 1, key - 2, key - 3});
        store->SetBuckets(buckets);
      }
      std::vector<NDArray> grads;
      for (int key = 0; key < kKeys; ++key)
        grads.push_back(NDArray::Zeros(*runtime, {key + 1}, DType::kFloat32, gpus[0]));
      for (int step = 0; step < 20; ++step) {
        for (int i = 0; i < kKeys; ++i) {
          // Computed in opposite orders.
          const int key = group->first() ? i : kKeys - 1 - i;
          grads[static_cast<size_t>(key)].Fill(step + key + group->rank());
        }
        std::vector<KVStore::KeySums> sums;
        for (int key = kKeys; key-- > 0;) {
          const int priority = group->first() ? key : -key;
          sums.push_back(
              {key, store->Sum(key, {&grads[static_cast<size_t>(key)], 1}, priority), priority});
        }
        store->Update(sums);
        for (int key = 0; key < kKeys; ++key) {
          const std::vector<float> expected(static_cast<size_t>(key + 1),
                                            static_cast<float>(2 * (step + key) + 1));
          CHECK(store->Values(key)[0].ToVector() == expected);
        }
      }
    });
  }
}

TEST_CASE("with the wire in bfloat16 GPUs of ranks sum what GPUs of one process do") {
  const std::vector<float> values{1.001F, -3.14159F, 1e-3F, 77.7F};
  std::vector<float> expected;
  {
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = KVStore::Create(*runtime, "device", Gpus(2), test::NewFakeCommunicator,
                                       nullptr, {.wire = DistOptions::Wire::kBfloat16});
    store->Init(0, OnEachRanked(*runtime, Gpus(2), 0, values), /*share=*/false);
    store->Push(0, OnEachRanked(*runtime, Gpus(2), 0, values), 0);
    expected = store->Values(0)[1].ToVector();
  }
  test::RunRanks(2, [&](const Group& group) {
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = NewStore(*runtime, Gpus(1), group, {.wire = DistOptions::Wire::kBfloat16});
    store->Init(0, OnEachRanked(*runtime, Gpus(1), group->rank(), values), /*share=*/false);
    store->Push(0, OnEachRanked(*runtime, Gpus(1), group->rank(), values), 0);
    CHECK(store->Values(0)[0].ToVector() == expected);
  });
}

TEST_CASE("ranks whose buckets differ are refused, with the key that differs") {
  const auto errors = ErrorsOf(3, [](const Group& group) {
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = NewStore(*runtime, Gpus(1), group);
    for (int key = 0; key < 3; ++key)
      store->Init(key, OnEachRanked(*runtime, Gpus(1), 0, {1, 2}), /*share=*/true);
    store->SetBuckets(group->rank() == 2 ? std::vector<std::vector<int>>{{2}, {1, 0}}
                                         : std::vector<std::vector<int>>{{2, 1}, {0}});
  });
  for (const std::string& error : errors) {
    CAPTURE(error);
    CHECK(error.starts_with("3: rank 2 would sum other gradients than rank 0: "));
    CHECK(error.find("(key 1), [2] float32 (plain) in bucket 1, where rank 0 has ") !=
          std::string::npos);
    CHECK(error.find("(plain) in bucket 0; all ranks need the same net") != std::string::npos);
  }
  const auto missing = ErrorsOf(2, [](const Group& group) {
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = NewStore(*runtime, Gpus(1), group);
    store->Init(0, OnEachRanked(*runtime, Gpus(1), 0, {1, 2}), /*share=*/true);
    store->SetBuckets(group->first() ? std::vector<std::vector<int>>{{0}}
                                     : std::vector<std::vector<int>>{});
  });
  for (const std::string& error : missing)
    CHECK(error.starts_with("3: rank 1 would sum other gradients than rank 0: nothing, where"));
}

TEST_CASE("dist_device_sync refuses what it does not have") {
  const auto errors = [](const std::vector<Context>& workers, const DistOptions& options) {
    return ErrorsOf(1, [&](const Group& group) {
      const auto runtime = test::NewFakeGpuRuntime();
      NewStore(*runtime, workers, group, options);
    })[0];
  };
  CHECK(errors(Gpus(1), {.shard_states = true})
            .starts_with("3: KVStore 'dist_device_sync' has no sharded states"));
  CHECK(errors(Gpus(1), {.wire = DistOptions::Wire::kTwoBit})
            .starts_with("3: KVStore 'dist_device_sync' has no 2-bit compression"));
  CHECK(errors({Context::cpu()}, {}) ==
        "3: KVStore 'dist_device_sync' needs one GPU per worker; use dist_sync");
  const auto runtime = test::NewFakeGpuRuntime();
  CHECK_THROWS_WITH(KVStore::Create(*runtime, kType, Gpus(1)),
                    doctest::Contains("without a group"));
}

TEST_CASE("sums that wait for a lost rank end when the group fails, and later ones throw") {
  test::NewFakeGpuRuntime();  // the first one takes long
  std::promise<void> ended;
  const auto errors = ErrorsOf(
      2,
      [&](const Group& group) {
        const auto runtime = test::NewFakeGpuRuntime();
        const auto store = NewStore(*runtime, Gpus(1), group);
        store->Init(0, OnEachRanked(*runtime, Gpus(1), 0, {1, 2}), /*share=*/true);
        store->SetBuckets({{0}});
        if (!group->first()) {  // it never sums
          ended.get_future().wait_for(std::chrono::seconds(60));
          return;
        }
        const std::vector<NDArray> grads = OnEachRanked(*runtime, Gpus(1), 0, {1, 2});
        store->Push(0, grads, 0);
        CHECK_THROWS_WITH(group->Barrier(), doctest::Contains("rank 1 ended or does not answer"));
        ended.set_value();
        runtime->engine().WaitForAll();  // not for ever
        store->Push(0, grads, 0);
        store->Values(0)[0].WaitToRead();
      },
      {.timeout_seconds = 2});
  CAPTURE(errors[0]);
  CHECK(errors[0] == "10: all_reduce: a rank of the test is lost");
}

}  // namespace
}  // namespace mxtrain
