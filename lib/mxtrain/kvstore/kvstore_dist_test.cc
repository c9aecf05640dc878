// SPDX-License-Identifier: Apache-2.0
// dist_sync between ranks that are threads, each with a runtime of its own.
#include <doctest/doctest.h>

#include <random>

#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/thread_ranks.h"

namespace mxtrain {
namespace {

using test::RunRanks;
using Values = std::vector<float>;

Values Random(int64_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal;
  Values values(static_cast<size_t>(n));
  for (float& value : values) value = normal(random);
  return values;
}

// Sizes such that some keys share a bucket and some fill one alone.
const std::vector<int64_t> kSizes = {3, 17, 1 << 21, 1000, 5, (1 << 20) + 7, 64, 1};

unsigned SeedOf(int rank, int step, size_t key) {
  return static_cast<unsigned>(rank * 1000 + step * 100) + static_cast<unsigned>(key);
}

TEST_CASE("dist_sync sums over the ranks, in buckets, step after step") {
  constexpr int kSteps = 3;
  for (int ranks : {1, 2, 3}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
      CHECK(store->rank() == group->rank());
      CHECK(store->num_workers() == ranks);
      std::vector<NDArray> weights, grads;
      for (size_t k = 0; k < kSizes.size(); ++k) {
        weights.push_back(NDArray::FromVector(runtime, TShape({kSizes[k]}),
                                              Random(kSizes[k], SeedOf(group->rank(), 99, k))));
        grads.push_back(NDArray::Zeros(runtime, TShape({kSizes[k]})));
        store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
      }
      for (size_t k = 0; k < kSizes.size(); ++k)
        CHECK(weights[k].ToVector() == Random(kSizes[k], SeedOf(0, 99, k)));
      for (int step = 0; step < kSteps; ++step) {
        std::vector<KVStore::KeySums> sums;
        // Each rank issues its gradients in an order of its own; the calls have one order.
        for (size_t k = 0; k < kSizes.size(); ++k) {
          const Values own = Random(kSizes[k], SeedOf(group->rank(), step, k));
          grads[k].CopyFromHost(own.data(), kSizes[k] * 4);
        }
        for (size_t k = kSizes.size(); k-- > 0;)
          sums.push_back(
              {static_cast<int>(k), store->Sum(static_cast<int>(k), {&grads[k], 1}, 0), 0});
        store->Update(sums);  // without an updater: the sums replace the values
        for (size_t k = 0; k < kSizes.size(); ++k) {
          Values expected = Random(kSizes[k], SeedOf(0, step, k));
          for (int r = 1; r < ranks; ++r) {
            const Values other = Random(kSizes[k], SeedOf(r, step, k));
            for (size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
          }
          CHECK(weights[k].ToVector() == expected);
        }
      }
      store->Barrier();
    });
  }
}

TEST_CASE("dist_sync sums the workers of each rank first") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const std::vector<Context> workers(3, Context::cpu());
    const auto store = KVStore::Create(runtime, "dist_sync", workers, {}, group);
    std::vector<NDArray> weights, grads;
    for (int w = 0; w < 3; ++w) {
      weights.push_back(NDArray::FromVector(runtime, TShape({2}), {float(w), float(w)}));
      grads.push_back(
          NDArray::FromVector(runtime, TShape({2}), {float(group->rank() * 10 + w), 1}));
    }
    store->Init(4, weights, /*share=*/true);
    store->Push(4, grads, 0);
    store->Pull(4, weights, 0);
    for (const NDArray& weight : weights)
      CHECK(weight.ToVector() == Values{0 + 1 + 2 + 10 + 11 + 12, 6});
  });
}

TEST_CASE("a rank that fails ends the sums of the others with an error") {
  test::ThreadRanks ranks(2);
  ranks.Lose(1);
  const auto group = std::make_shared<ProcessGroup>(ranks.Opener(0),
                                                    ProcessGroup::Options{.timeout_seconds = 0.2});
  Runtime runtime(RuntimeOptions(), BuiltinOperators());
  const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
  const NDArray weight = NDArray::Zeros(runtime, TShape({4})),
                grad = NDArray::Zeros(runtime, TShape({4}));
  store->Init(0, {&weight, 1}, /*share=*/true);
  CHECK_THROWS_WITH(weight.WaitToRead(), doctest::Contains("train.kvstore.timeout"));
  store->Push(0, {&grad, 1}, 0);
  CHECK_THROWS_AS(runtime.engine().WaitForAll(), Error);
}

TEST_CASE("an update before a bucket is whole is a mistake of the caller") {
  RunRanks(1, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
    const NDArray a = NDArray::Zeros(runtime, TShape({4})),
                  b = NDArray::Zeros(runtime, TShape({4}));
    store->Init(0, {&a, 1}, true);
    store->Init(1, {&b, 1}, true);
    CHECK_THROWS_WITH(store->Push(1, {&b, 1}, 0), doctest::Contains("bucket"));
    CHECK_THROWS_AS(store->Init(2, {&a, 1}, true), Error);
  });
}

}  // namespace
}  // namespace mxtrain
