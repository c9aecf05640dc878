// SPDX-License-Identifier: Apache-2.0
// dist_sync between ranks that are threads, each with a runtime of its own.
#include <doctest/doctest.h>

#include <cmath>

#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::FloatVector;
using test::Noise;
using test::RunRanks;

// Sizes such that some keys share a bucket and some fill one alone.
const std::vector<int64_t> kSyncSizes = {3, 17, 1 << 21, 1000, 5, (1 << 20) + 7, 64, 1};

unsigned SeedOf(int rank, int step, size_t key) {
  return static_cast<unsigned>(rank * 1000 + step * 100) + static_cast<unsigned>(key);
}

// Sums and updates by the random gradients of a rank. All ranks make the calls in one order.
void PushStep(KVStore& store, int rank, int step, std::vector<NDArray>* grads) {
  for (size_t k = 0; k < kSyncSizes.size(); ++k) {
    const FloatVector own = Noise(kSyncSizes[k], SeedOf(rank, step, k));
    (*grads)[k].CopyFromHost(own.data(), kSyncSizes[k] * 4);
  }
  std::vector<KVStore::KeySums> sums;
  for (size_t k = kSyncSizes.size(); k-- > 0;)
    sums.push_back({static_cast<int>(k), store.Sum(static_cast<int>(k), {&(*grads)[k], 1}, 0), 0});
  store.Update(sums);
}

TEST_CASE("dist_sync sums over the ranks, in buckets, step after step") {
  constexpr int kSteps = 7;  // the order in which they travel is planned after 5
  for (int ranks : {1, 2, 3}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
      CHECK(store->rank() == group->rank());
      CHECK(store->num_workers() == ranks);
      std::vector<NDArray> weights, grads;
      for (size_t k = 0; k < kSyncSizes.size(); ++k) {
        weights.push_back(NDArray::FromVector(runtime, TShape({kSyncSizes[k]}),
                                              Noise(kSyncSizes[k], SeedOf(group->rank(), 99, k))));
        grads.push_back(NDArray::Zeros(runtime, TShape({kSyncSizes[k]})));
        store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
      }
      for (size_t k = 0; k < kSyncSizes.size(); ++k)
        CHECK(weights[k].ToVector() == Noise(kSyncSizes[k], SeedOf(0, 99, k)));
      for (int step = 0; step < kSteps; ++step) {
        PushStep(*store, group->rank(), step,
                 &grads);  // without an updater: the sums replace the values
        for (size_t k = 0; k < kSyncSizes.size(); ++k) {
          FloatVector expected = Noise(kSyncSizes[k], SeedOf(0, step, k));
          for (int r = 1; r < ranks; ++r) {
            const FloatVector other = Noise(kSyncSizes[k], SeedOf(r, step, k));
            for (size_t i = 0; i < expected.size(); ++i) expected[i] += other[i];
          }
          CHECK(weights[k].ToVector() == expected);
        }
      }
      store->Barrier();
    });
  }
}

TEST_CASE("dist_sync takes keys one by one, in any order") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
    constexpr int64_t kLarge = 1 << 18;  // alone in its bucket
    std::vector<NDArray> weights;
    for (int key = 0; key < 3; ++key) {
      weights.push_back(NDArray::Zeros(runtime, TShape({kLarge})));
      store->Init(key, {&weights.back(), 1}, /*share=*/true);
    }
    for (int step = 1; step <= 4; ++step) {
      for (int key : {1, 0, 2}) {
        const NDArray gradient = NDArray::FromVector(
            runtime, TShape({kLarge}), FloatVector(kLarge, float(step + key + 10 * group->rank())));
        store->Push(key, {&gradient, 1}, 0);
        CHECK(weights[static_cast<size_t>(key)].ToVector() ==
              FloatVector(kLarge, float(2 * (step + key) + 10)));
      }
    }
  });
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
      CHECK(weight.ToVector() == FloatVector{0 + 1 + 2 + 10 + 11 + 12, 6});
  });
}

// To 8 significant bits, ties to even.
float ToBfloat16(float value) {
  if (value == 0) return value;
  int exponent = 0;
  const double fraction = std::frexp(double{value}, &exponent);  // from 0.5 to 1
  return static_cast<float>(std::ldexp(std::nearbyint(std::ldexp(fraction, 8)), exponent - 8));
}

TEST_CASE("with wire bfloat16 gradients are rounded, and their sums at each addition") {
  CHECK(ToBfloat16(1.00390625F) == 1);             // a tie, to even
  CHECK(ToBfloat16(1.01171875F) == 1.015625F);     // a tie, to even
  CHECK(ToBfloat16(-1.00390637F) == -1.0078125F);  // above a tie
  for (int ranks : {1, 2, 3}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group,
                                         {.wire = DistOptions::Wire::kBfloat16});
      // The last key is not rounded, since it is not float32.
      const auto sizes = kSyncSizes.size();
      std::vector<NDArray> weights, grads;
      for (size_t k = 0; k <= sizes; ++k) {
        const DType type = k == sizes ? DType::kFloat64 : DType::kFloat32;
        const TShape shape({k == sizes ? 1 : kSyncSizes[k]});
        weights.push_back(NDArray::Zeros(runtime, shape, type));
        grads.push_back(NDArray::Zeros(runtime, shape, type));
        store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
      }
      for (int step = 0; step < 2; ++step) {
        std::vector<KVStore::KeySums> sums;
        for (size_t k = 0; k < sizes; ++k) {
          const FloatVector own = Noise(kSyncSizes[k], SeedOf(group->rank(), step, k));
          grads[k].CopyFromHost(own.data(), kSyncSizes[k] * 4);
        }
        grads[sizes].Fill(1 + 0x1p-20);
        for (int k = static_cast<int>(sizes); k >= 0; --k)
          sums.push_back({k, store->Sum(k, {&grads[static_cast<size_t>(k)], 1}, 0), 0});
        store->Update(sums);
        for (size_t k = 0; k < sizes; ++k) {
          FloatVector expected(static_cast<size_t>(kSyncSizes[k]), 0);
          for (int r = 0; r < ranks; ++r) {
            const FloatVector part = Noise(kSyncSizes[k], SeedOf(r, step, k));
            for (size_t i = 0; i < expected.size(); ++i)
              expected[i] = ToBfloat16(expected[i] + ToBfloat16(part[i]));
          }
          CHECK(weights[k].ToVector() == expected);
        }
        double exact = 0;
        weights[sizes].CopyToHost(&exact, sizeof exact);
        CHECK(exact == ranks * (1 + 0x1p-20));
      }
      store->Barrier();
      const ProcessGroup::Stats before = group->stats();
      for (int k = static_cast<int>(sizes); k >= 0; --k)
        store->Sum(k, {&grads[static_cast<size_t>(k)], 1}, 0);
      runtime.engine().WaitForAll();
      int64_t elements = 0;
      for (int64_t size : kSyncSizes) elements += size;
      const double bytes = static_cast<double>(group->stats().bytes - before.bytes);
      CHECK(bytes == doctest::Approx(2.0 * static_cast<double>(elements)).epsilon(1e-3));
    });
  }
}

TEST_CASE("with 2-bit compression the sum is that of what each rank sends, in their order") {
  constexpr float kThreshold = 0.7F;
  for (int ranks : {1, 2, 4}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store =
          KVStore::Create(runtime, "dist_sync", {}, {}, group,
                          {.wire = DistOptions::Wire::kTwoBit, .threshold = kThreshold});
      std::vector<NDArray> weights, grads;
      for (size_t k = 0; k < kSyncSizes.size(); ++k) {
        weights.push_back(NDArray::Zeros(runtime, TShape({kSyncSizes[k]})));
        grads.push_back(NDArray::Zeros(runtime, TShape({kSyncSizes[k]})));
        store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
      }
      // [rank][key]
      std::vector<std::vector<FloatVector>> residuals(static_cast<size_t>(ranks));
      for (auto& of_rank : residuals) {
        for (int64_t size : kSyncSizes) of_rank.emplace_back(static_cast<size_t>(size));
      }
      for (int step = 0; step < 3; ++step) {
        PushStep(*store, group->rank(), step, &grads);
        for (size_t k = 0; k < kSyncSizes.size(); ++k) {
          FloatVector expected(static_cast<size_t>(kSyncSizes[k]));
          for (int r = 0; r < ranks; ++r) {
            const FloatVector part = Noise(kSyncSizes[k], SeedOf(r, step, k));
            FloatVector& residual = residuals[static_cast<size_t>(r)][k];
            for (size_t i = 0; i < expected.size(); ++i) {
              residual[i] += part[i];
              const float sent = residual[i] >= kThreshold    ? kThreshold
                                 : residual[i] <= -kThreshold ? -kThreshold
                                                              : 0;
              residual[i] -= sent;
              expected[i] += sent;
            }
          }
          CHECK(weights[k].ToVector() == expected);
          CHECK(store->Residuals().at(static_cast<int>(k)).ToVector() ==
                residuals[static_cast<size_t>(group->rank())][k]);
        }
      }
      store->Barrier();
    });
  }
}

TEST_CASE("with sharded states each key is updated by one rank, and all have its value") {
  for (int ranks : {1, 2, 3}) {
    RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store =
          KVStore::Create(runtime, "dist_sync", {}, {}, group, {.shard_states = true});
      std::vector<NDArray> weights, grads;
      for (size_t k = 0; k < kSyncSizes.size(); ++k) {
        weights.push_back(NDArray::Zeros(runtime, TShape({kSyncSizes[k]})));
        grads.push_back(NDArray::Zeros(runtime, TShape({kSyncSizes[k]})));
        store->Init(static_cast<int>(k), {&weights[k], 1}, /*share=*/true);
      }
      int updates = 0, own = 0;
      for (int k = 0; k < static_cast<int>(kSyncSizes.size()); ++k) {
        CHECK(store->OwnerOf(k).has_value() == (ranks > 1));
        own += store->OwnerOf(k).value_or(group->rank()) == group->rank();
      }
      // Value += sum + a number of the rank, which shows who has updated it.
      store->SetUpdater([&](std::span<const KVStore::KeyUpdate> keys) {
        for (const KVStore::KeyUpdate& key : keys) {
          ++updates;
          const NDArray sum = key.received + static_cast<float>(100 * group->rank());
          InvokeInto("elemwise_add", std::vector{key.local, sum}, std::span(&key.local, 1));
        }
      });
      std::vector<FloatVector> expected;
      for (int64_t size : kSyncSizes) expected.emplace_back(static_cast<size_t>(size));
      for (int step = 0; step < 3; ++step) {
        std::vector<KVStore::KeySums> sums;
        for (size_t k = 0; k < kSyncSizes.size(); ++k) {
          grads[k].Fill(group->rank() + step);
          const float sum = static_cast<float>(ranks * (ranks - 1) / 2 + ranks * step);
          for (float& value : expected[k])
            value +=
                sum + 100.0F * static_cast<float>(store->OwnerOf(static_cast<int>(k)).value_or(0));
        }
        for (size_t k = kSyncSizes.size(); k-- > 0;)
          sums.push_back(
              {static_cast<int>(k), store->Sum(static_cast<int>(k), {&grads[k], 1}, 0), 0});
        store->Update(sums);
        for (size_t k = 0; k < kSyncSizes.size(); ++k) CHECK(weights[k].ToVector() == expected[k]);
      }
      CHECK(updates == 3 * own);
      store->Barrier();
    });
  }
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

TEST_CASE("a key is initialised before the first sum") {
  RunRanks(1, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
    const NDArray a = NDArray::Zeros(runtime, TShape({4})),
                  b = NDArray::Zeros(runtime, TShape({4}));
    store->Init(0, {&a, 1}, true);
    store->Init(1, {&b, 1}, true);
    store->Push(1, {&b, 1}, 0);
    CHECK_THROWS_AS(store->Init(2, {&a, 1}, true), Error);
  });
}

}  // namespace
}  // namespace mxtrain
