// SPDX-License-Identifier: Apache-2.0
// MXNet's loops over keys, `for key: push; pull` and lists of keys, on every store: random programs
// of pushes and pulls against the store `local`, which gets the gradients of all ranks.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/kvstore/rounds.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/thread_ranks.h"
#include "tests/support/vectors.h"

namespace mxtrain {
namespace {

using test::FloatVector;
using test::RunRanks;

// Small keys, which share buckets and parcels, and two that travel alone.
const std::vector<int64_t> kKeySizes = {3, 17, 1 << 18, 1000, 5, (1 << 17) + 7, 64, 1, 30};
const int kKeys = static_cast<int>(kKeySizes.size());

// Small integers: the sums of few of them have no rounding, in bfloat16 neither.
FloatVector Gradient(int rank, int push, int key) {
  FloatVector values = test::Noise(kKeySizes[static_cast<size_t>(key)],
                                   static_cast<uint32_t>(rank * 1000 + push * 20 + key));
  for (float& value : values) value = static_cast<float>(static_cast<int>(value * 4));
  return values;
}

// Halves the value and adds the sum: the order of the updates of a key matters.
void HalveAndAdd(std::span<const KVStore::KeyUpdate> keys) {
  for (const KVStore::KeyUpdate& key : keys) {
    const NDArray next = key.local * 0.5F + key.received;
    NDArray(key.local).CopyFrom(next);
  }
}
void AddUp(std::span<const KVStore::KeyUpdate> keys) {
  for (const KVStore::KeyUpdate& key : keys)
    InvokeInto("elemwise_add", std::vector{key.local, key.received}, std::span(&key.local, 1));
}

// What a program does, the same on all ranks.
struct Action {
  enum Kind { kPush, kPull, kBarrier } kind;
  int key = 0;
};

// Lists of keys, which are pushed and then pulled, each in an order of its own. Now and then a key
// is pushed again before it is pulled, pulled without a push, or left without a pull.
std::vector<Action> RandomActions(unsigned seed, int steps, bool barriers) {
  std::mt19937 random(seed);
  std::vector<Action> program;
  std::vector<int> keys(kKeySizes.size());
  std::iota(keys.begin(), keys.end(), 0);
  for (int step = 0; step < steps; ++step) {
    std::shuffle(keys.begin(), keys.end(), random);
    const size_t most = 1 + random() % keys.size();
    for (size_t begin = 0; begin < keys.size(); begin += most) {
      std::vector<int> list(
          keys.begin() + static_cast<ptrdiff_t>(begin),
          keys.begin() + static_cast<ptrdiff_t>(std::min(begin + most, keys.size())));
      for (const int key : list) {
        program.push_back({Action::kPush, key});
        if (random() % 8 == 0) program.push_back({Action::kPush, key});
      }
      std::shuffle(list.begin(), list.end(), random);
      for (const int key : list) {
        if (random() % 8 == 0)
          program.push_back({Action::kPull, static_cast<int>(random()) % kKeys});
        if (random() % 8 != 0) program.push_back({Action::kPull, key});
      }
    }
    if (barriers && random() % 2 == 0) program.push_back({Action::kBarrier});
  }
  for (Action& action : program) action.key = std::abs(action.key) % kKeys;
  for (int key = 0; key < kKeys; ++key) program.push_back({Action::kPull, key});
  return program;
}

// Keys with the values 0, 1, ... on one device for each worker.
void InitAll(Runtime& runtime, KVStore& store, const std::vector<Context>& workers) {
  for (int key = 0; key < kKeys; ++key) {
    std::vector<NDArray> values;
    for (const Context worker : workers) {
      const FloatVector filled(static_cast<size_t>(kKeySizes[static_cast<size_t>(key)]),
                               float(key));
      values.push_back(NDArray::FromVector(runtime, TShape({std::ssize(filled)}), filled, worker));
    }
    store.Init(key, values, /*share=*/false);
  }
}

// The values of all pulls. Worker w pushes the gradients of rank `first + w`. Gradients stay as
// they are.
std::vector<FloatVector> Pulled(Runtime& runtime, KVStore& store,
                                const std::vector<Action>& program,
                                const std::vector<Context>& workers, int first) {
  std::vector<FloatVector> pulled;
  std::vector<NDArray> kept;
  std::vector<FloatVector> gradients;
  int pushes = 0;
  for (const Action& action : program) {
    if (action.kind == Action::kBarrier) {
      store.Barrier();
    } else if (action.kind == Action::kPush) {
      std::vector<NDArray> of_workers;
      for (size_t w = 0; w < workers.size(); ++w) {
        gradients.push_back(Gradient(first + static_cast<int>(w), pushes, action.key));
        of_workers.push_back(NDArray::FromVector(runtime, TShape({std::ssize(gradients.back())}),
                                                 gradients.back(), workers[w]));
        kept.push_back(of_workers.back());
      }
      store.Push(action.key, of_workers, -action.key);
      ++pushes;
    } else {
      std::vector<NDArray> out;
      for (const Context worker : workers)
        out.push_back(NDArray::Zeros(runtime, TShape({kKeySizes[static_cast<size_t>(action.key)]}),
                                     DType::kFloat32, worker));
      store.Pull(action.key, out, -action.key);
      pulled.push_back(out[0].ToVector());
      for (const NDArray& other : out) CHECK(other.ToVector() == pulled.back());
    }
  }
  for (size_t i = 0; i < kept.size(); ++i) {
    if (kept[i].ctx() == Context::cpu()) CHECK(kept[i].ToVector() == gradients[i]);
  }
  return pulled;
}

// By `local`, with a worker for each rank.
std::vector<FloatVector> ExpectedValues(const std::vector<Action>& program, int ranks,
                                        const KVStore::Updater& updater) {
  Runtime runtime(RuntimeOptions(), BuiltinOperators());
  const auto store = KVStore::Create(runtime, "local");
  const std::vector<Context> workers(static_cast<size_t>(ranks), Context::cpu());
  InitAll(runtime, *store, workers);
  store->SetUpdater(updater);
  return Pulled(runtime, *store, program, workers, 0);
}

TEST_CASE("programs of single keys and of lists get the values of `local` from dist_sync") {
  for (int ranks : {1, 2, 3, 4}) {
    for (const DistOptions& options : {DistOptions{}, DistOptions{.shard_states = true},
                                       DistOptions{.wire = DistOptions::Wire::kBfloat16}}) {
      CAPTURE(ranks);
      CAPTURE(options.shard_states);
      CAPTURE(static_cast<int>(options.wire));
      const auto seed = static_cast<unsigned>(ranks) + (options.shard_states ? 10U : 0U);
      const std::vector<Action> program = RandomActions(seed, 4, /*barriers=*/true);
      const std::vector<FloatVector> expected = ExpectedValues(program, ranks, HalveAndAdd);
      RunRanks(ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
        Runtime runtime(RuntimeOptions(), BuiltinOperators());
        const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group, options);
        InitAll(runtime, *store, {Context::cpu()});
        store->SetUpdater(HalveAndAdd);
        const auto pulled = Pulled(runtime, *store, program, {Context::cpu()}, group->rank());
        CHECK(pulled == expected);
      });
    }
  }
}

// Every rank adds what it has; the order in which they come does not matter to the sum.
TEST_CASE("programs of single keys and of lists get all gradients from dist_async") {
  for (int ranks : {1, 2, 3, 4}) {
    CAPTURE(ranks);
    const std::vector<Action> program =
        RandomActions(static_cast<unsigned>(ranks), 4, /*barriers=*/true);
    const std::vector<FloatVector> expected = ExpectedValues(program, ranks, AddUp);
    RunRanks(ranks, [&](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto store = KVStore::Create(runtime, "dist_async", {}, {}, group);
      InitAll(runtime, *store, {Context::cpu()});
      store->SetUpdater(AddUp);
      std::vector<Action> with_end = program;
      with_end.insert(with_end.end() - kKeys, {Action::kBarrier});
      const auto pulled = Pulled(runtime, *store, with_end, {Context::cpu()}, group->rank());
      REQUIRE(pulled.size() == expected.size());
      CHECK(std::equal(pulled.end() - kKeys, pulled.end(), expected.end() - kKeys));
      // Alone, the rank reads what it has pushed so far.
      if (ranks == 1) CHECK(pulled == expected);
    });
  }
}

TEST_CASE("programs of single keys and of lists get the values of `local` from GPUs in buckets") {
  const std::vector<Context> gpus{Context::gpu(0), Context::gpu(1)};
  for (const auto wire : {DistOptions::Wire::kFloat32, DistOptions::Wire::kBfloat16}) {
    const std::vector<Action> program = RandomActions(7, 4, /*barriers=*/true);
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = KVStore::Create(*runtime, "device", gpus, test::NewFakeCommunicator, nullptr,
                                       {.wire = wire});
    InitAll(*runtime, *store, gpus);
    store->SetBuckets({{8, 7, 6}, {5, 4}, {3, 2, 1, 0}});
    store->SetUpdater(HalveAndAdd);
    CHECK(Pulled(*runtime, *store, program, gpus, 0) == ExpectedValues(program, 2, HalveAndAdd));
  }
}

// All keys at once, as a trainer updates them, and key by key: gradients of any bits, also those
// that compression leaves behind.
TEST_CASE("a store gives the bits of one update of all keys to a loop over keys") {
  using Wire = DistOptions::Wire;
  for (const DistOptions& options :
       {DistOptions{}, DistOptions{.wire = Wire::kBfloat16},
        DistOptions{.wire = Wire::kTwoBit, .threshold = 0.7F}, DistOptions{.shard_states = true}}) {
    CAPTURE(static_cast<int>(options.wire));
    RunRanks(3, [&](const std::shared_ptr<ProcessGroup>& group) {
      Runtime runtime(RuntimeOptions(), BuiltinOperators());
      const auto together = KVStore::Create(runtime, "dist_sync", {}, {}, group, options),
                 by_key = KVStore::Create(runtime, "dist_sync", {}, {}, group, options);
      for (KVStore* store : {together.get(), by_key.get()}) {
        InitAll(runtime, *store, {Context::cpu()});
        store->SetUpdater(HalveAndAdd);
      }
      std::mt19937 order(3), own(static_cast<unsigned>(group->rank()));
      std::normal_distribution<float> normal;
      std::vector<int> keys(kKeySizes.size());
      std::iota(keys.begin(), keys.end(), 0);
      for (int step = 0; step < 3; ++step) {
        std::vector<NDArray> gradients, copies;
        for (const int64_t size : kKeySizes) {
          FloatVector values(static_cast<size_t>(size));
          for (float& value : values) value = normal(own);
          gradients.push_back(NDArray::FromVector(runtime, TShape({size}), values));
          copies.push_back(gradients.back().Copy(Context::cpu()));
        }
        std::vector<KVStore::KeySums> sums;
        for (int key = kKeys; key-- > 0;)
          sums.push_back({key, together->Sum(key, {&copies[static_cast<size_t>(key)], 1}, 0), 0});
        together->Update(sums);
        std::shuffle(keys.begin(), keys.end(), order);
        for (const int key : keys) {
          const NDArray zeros =
              NDArray::Zeros(runtime, TShape({kKeySizes[static_cast<size_t>(key)]}));
          const NDArray out[] = {zeros, zeros.Copy(Context::cpu())};
          by_key->Push(key, {&gradients[static_cast<size_t>(key)], 1}, 0);
          by_key->Pull(key, {&out[0], 1}, 0);
          together->Pull(key, {&out[1], 1}, 0);
          CHECK(out[0].ToVector() == out[1].ToVector());
        }
        const std::map<int, NDArray> left = together->Residuals();
        for (const auto& [key, residual] : by_key->Residuals())
          CHECK(residual.ToVector() == left.at(key).ToVector());
      }
    });
  }
}

// Two small keys of one bucket. The first sum of key 0 must not count for key 1.
TEST_CASE("a key that is summed twice leaves the sum of another key of its bucket alone") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    Runtime runtime(RuntimeOptions(), BuiltinOperators());
    const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
    const NDArray zeros = NDArray::Zeros(runtime, TShape({2})),
                  ones = NDArray::FromVector(runtime, TShape({2}), {1, 1}),
                  tens = NDArray::FromVector(runtime, TShape({2}), {10, 10});
    for (int key : {0, 1}) store->Init(key, {&zeros, 1}, /*share=*/false);
    store->Sum(0, {&ones, 1}, 0);
    const KVStore::KeySums again{0, store->Sum(0, {&tens, 1}, 0), 0};
    const KVStore::KeySums other{1, store->Sum(1, {&ones, 1}, 0), 0};
    store->Update(std::vector{again, other});
    CHECK(store->Values(0)[0].ToVector() == FloatVector{20, 20});
    CHECK(store->Values(1)[0].ToVector() == FloatVector{2, 2});
  });
}

TEST_CASE("a key that is summed twice on GPUs leaves the sum of another key of its bucket alone") {
  const std::vector<Context> gpus{Context::gpu(0), Context::gpu(1)};
  const auto runtime = test::NewFakeGpuRuntime();
  const auto store = KVStore::Create(*runtime, "device", gpus, test::NewFakeCommunicator);
  const auto on_both = [&](float value) {
    std::vector<NDArray> arrays;
    for (const Context gpu : gpus)
      arrays.push_back(NDArray::FromVector(*runtime, TShape({2}), {value, value}, gpu));
    return arrays;
  };
  for (int key : {0, 1}) store->Init(key, on_both(0), /*share=*/false);
  store->SetBuckets({{1, 0}});
  const std::vector<NDArray> ones = on_both(1), tens = on_both(10), of_other = on_both(1);
  store->Sum(0, ones, 0);
  const KVStore::KeySums again{0, store->Sum(0, tens, 0), 0};
  const KVStore::KeySums other{1, store->Sum(1, of_other, 0), 0};
  store->Update(std::vector{again, other});
  for (size_t d = 0; d < gpus.size(); ++d) {
    CHECK(store->Values(0)[d].ToVector() == FloatVector{20, 20});
    CHECK(store->Values(1)[d].ToVector() == FloatVector{2, 2});
  }
}

TEST_CASE("a rank whose sums have failed leaves the others to agree on the order of sending") {
  const std::vector<std::string> errors = test::ErrorsOf(
      2,
      [&](const std::shared_ptr<ProcessGroup>& group) {
        Runtime runtime(RuntimeOptions(), BuiltinOperators());
        const auto store = KVStore::Create(runtime, "dist_sync", {}, {}, group);
        InitAll(runtime, *store, {Context::cpu()});
        int updates = 0;
        store->SetUpdater([&](std::span<const KVStore::KeyUpdate> keys) {
          if (++updates != 5 || group->rank() != 1) return;
          const engine::VarHandle sum = keys[0].received.var();
          runtime.engine().PushSync([](RunContext) { Throw(ErrorKind::kMemory, "no memory"); }, {},
                                    {&sum, 1}, {.name = "failing"});
        });
        std::vector<NDArray> gradients;
        for (const int64_t size : kKeySizes)
          gradients.push_back(NDArray::Zeros(runtime, TShape({size})));
        for (int step = 0; step < 5; ++step) {
          std::vector<KVStore::KeySums> sums;
          for (int key = kKeys; key-- > 0;)
            sums.push_back({key, store->Sum(key, {&gradients[static_cast<size_t>(key)], 1}, 0), 0});
          store->Update(sums);  // the order is planned after the fifth
        }
      },
      {.timeout_seconds = 2});
  CHECK(errors[0] == "");
  CHECK(errors[1].find("no memory") != std::string::npos);
}

}  // namespace
}  // namespace mxtrain
