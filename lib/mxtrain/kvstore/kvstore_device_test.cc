// SPDX-License-Identifier: Apache-2.0
// KVStore `device` on fake GPUs: sums, values and updates on each, the order of collectives,
// failures.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <random>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_stream.h"

namespace mxtrain {
namespace {

const std::vector<Context> kGpus{Context::gpu(0), Context::gpu(1)};

// The same numbers on each of some devices.
std::vector<NDArray> OnEach(Runtime& runtime, const std::vector<Context>& devices,
                            const std::vector<float>& values) {
  std::vector<NDArray> arrays;
  for (const Context device : devices) {
    arrays.push_back(
        NDArray::FromVector(runtime, TShape{static_cast<int64_t>(values.size())}, values, device));
  }
  return arrays;
}

TEST_CASE("gradients of two GPUs are summed on both, and every GPU keeps the value") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = test::NewFakeGpuRuntime(engine);
    const auto store = KVStore::Create(*runtime, "device", kGpus, test::NewFakeCommunicator);
    const std::vector<NDArray> values = OnEach(*runtime, kGpus, {1, 2, 3});
    store->Init(5, values, /*share=*/true);
    REQUIRE(store->Values(5).size() == 2);
    CHECK(store->Values(5)[1].SameView(values[1]));
    const NDArray grads[] = {NDArray::FromVector(*runtime, {3}, {10, 20, 30}, kGpus[0]),
                             NDArray::FromVector(*runtime, {3}, {1, 0.5, 0.25}, kGpus[1])};
    const std::vector<float> sum{11, 20.5, 30.25};
    store->Push(5, grads, 0);  // without an updater the sum becomes the value
    for (const NDArray& value : values) CHECK(value.ToVector() == sum);
    const std::vector<NDArray> out =
        OnEach(*runtime, {kGpus[1], Context::cpu(), kGpus[0]}, {0, 0, 0});
    store->Pull(5, out, 0);
    for (const NDArray& array : out) CHECK(array.ToVector() == sum);
    CHECK(store->num_workers() == 1);
  }
}

TEST_CASE(
    "an optimizer updates every GPU's weights, and all alike, as `local` does the one of the "
    "first") {
  const Kwargs params{{"momentum", "0.9"}, {"weight_decay", "0.01"}};
  std::vector<std::vector<float>> results;
  for (const char* type : {"local", "device"}) {
    const auto runtime = test::NewFakeGpuRuntime();
    const auto store = KVStore::Create(*runtime, type, kGpus, test::NewFakeCommunicator);
    std::vector<OptimizerUpdater::Key> keys;
    std::vector<std::vector<NDArray>> weights;
    for (int key = 0; key < 3; ++key) {
      weights.push_back(OnEach(*runtime, kGpus, {1, -2, 0.5f * static_cast<float>(key)}));
      store->Init(key, weights.back(), /*share=*/true);
      const auto kept = store->Values(key);
      keys.push_back({format("key {}", key), {kept.begin(), kept.end()}, {}});
    }
    OptimizerUpdater updater(*runtime, Optimizer::Create("sgd", params), keys, 0.125);
    store->SetUpdater(
        [&](std::span<const KVStore::KeyUpdate> updates) { updater.Update(updates); });
    for (int step = 0; step < 5; ++step) {
      updater.BeginStep(step, 0.1 / (step + 1));
      std::vector<std::vector<NDArray>> grads(3);
      std::vector<KVStore::KeySums> sums;
      for (int key = 0; key < 3; ++key) {
        const auto f = static_cast<float>(key + step);
        std::vector<NDArray>& of_key = grads[static_cast<size_t>(key)];
        of_key = {NDArray::FromVector(*runtime, {3}, {f, 1, 0.3f}, kGpus[0]),
                  NDArray::FromVector(*runtime, {3}, {0.1f, f, -2}, kGpus[1])};
        sums.push_back({key, store->Sum(key, of_key, 0), 0});
      }
      updater.ClipGlobalNorm(sums, 0.5);
      store->Update(sums);
      for (int key = 0; key < 3; ++key) store->Pull(key, weights[static_cast<size_t>(key)], 0);
    }
    std::vector<float>& result = results.emplace_back();
    for (const auto& of_key : weights) {
      const std::vector<float> first = of_key[0].ToVector();
      CHECK(of_key[1].ToVector() == first);
      result.insert(result.end(), first.begin(), first.end());
    }
    for (int device = 0; device < updater.num_devices(); ++device) {
      for (const auto& [name, state] : updater.StatesOn(device))
        CHECK(state.ToVector() == updater.States().at(name).ToVector());
    }
  }
  CHECK(results[0] == results[1]);
}

// Weights of several shapes on a GPU after five steps that push all keys in one update, or each
// separately; then the states.
std::vector<std::vector<float>> Updated(const std::string& optimizer,
                                        const std::vector<DType>& types, bool together) {
  const auto runtime = test::NewFakeGpuRuntime();
  const std::vector<TShape> shapes = {{5}, {2, 3}, {0}, {7, 2}};
  const auto array = [&](size_t key, int step) {
    std::vector<float> values(static_cast<size_t>(shapes[key].Size()));
    for (size_t i = 0; i < values.size(); ++i)
      values[i] =
          static_cast<float>((i * 7 + key * 5 + static_cast<size_t>(step) * 3) % 11) / 8 - 0.6f;
    const NDArray numbers = NDArray::FromVector(*runtime, shapes[key], values, kGpus[0]);
    return Invoke("Cast", {&numbers, 1}, {{"dtype", NameOf(types[key])}})[0];
  };
  std::vector<OptimizerUpdater::Key> keys;
  for (size_t key = 0; key < shapes.size(); ++key)
    keys.push_back(
        {format("key {}", key), {array(key, 0)}, {1.0 / static_cast<double>(key + 1), 1}});
  OptimizerUpdater updater(*runtime, Optimizer::Create(optimizer, {{"weight_decay", "0.01"}}), keys,
                           0.5);
  for (int step = 0; step < 5; ++step) {
    std::vector<NDArray> grads;
    std::vector<KVStore::KeySums> sums;
    std::vector<KVStore::KeyUpdate> updates;
    for (size_t key = 0; key < keys.size(); ++key) grads.push_back(array(key, step + 1));
    for (size_t key = keys.size(); key-- > 0;) {
      sums.push_back({static_cast<int>(key), std::span(&grads[key], 1), 0});
      updates.push_back({static_cast<int>(key), grads[key], keys[key].weights[0], 0});
    }
    updater.BeginStep(step, 0.1);
    updater.ClipGlobalNorm(sums, 0.5);
    if (together) {
      updater.Update(updates);
    } else {
      for (const KVStore::KeyUpdate& update : updates) updater.Update({&update, 1});
    }
  }
  std::vector<std::vector<float>> result;
  for (const OptimizerUpdater::Key& key : keys) result.push_back(key.weights[0].ToVector());
  for (const auto& [name, state] : updater.States()) result.push_back(state.ToVector());
  return result;
}

TEST_CASE("all keys in one update get the bits of an update each, also where their types differ") {
  for (const std::string& optimizer : Optimizer::Names()) {
    CAPTURE(optimizer);
    for (const std::vector<DType>& types :
         {std::vector<DType>(4, DType::kFloat32),
          {DType::kFloat32, DType::kFloat16, DType::kFloat32, DType::kBfloat16}}) {
      const auto together = Updated(optimizer, types, true);
      CHECK(together == Updated(optimizer, types, false));
    }
  }
}

// Counts calls, and fails on request.
class Watched final : public Communicator {
 public:
  struct Seen {
    int64_t fails_at = -1;
    std::function<void()> on_call = {};
    // Of each call; written by the one worker that makes collectives, read after a wait.
    std::vector<std::vector<int64_t>> sizes = {};
    std::vector<DType> types = {};
  };
  explicit Watched(Seen* seen) : seen_(seen) {}
  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override {
    std::vector<int64_t>& sizes = seen_->sizes.emplace_back();
    for (const ArrayOnEach& array : arrays) {
      sizes.push_back(array.n);
      seen_->types.push_back(array.type);
    }
    if (seen_->on_call) seen_->on_call();
    if (sizes[0] == seen_->fails_at) Throw(ErrorKind::kDevice, "the link is down");
    real_->AllReduce(ctx, arrays);
  }

 private:
  Seen* const seen_;
  const std::unique_ptr<Communicator> real_ = test::NewFakeCommunicator(kGpus);
};

// Two that become ready at the same time, by the workers of two GPUs, may come in either order.
TEST_CASE("each push is one collective of all GPUs, run when all gradients are ready") {
  const auto runtime = test::NewFakeGpuRuntime();
  Watched::Seen seen;
  const auto store = KVStore::Create(*runtime, "device", kGpus, [&](std::span<const Context>) {
    return std::make_unique<Watched>(&seen);
  });
  std::vector<std::vector<int64_t>> order;
  for (int round = 0; round < 20; ++round) {
    for (int key = 7; key >= 0; --key) {
      const std::vector<float> numbers(static_cast<size_t>(key + 1), 1.f);
      const std::vector<NDArray> grads = OnEach(*runtime, kGpus, numbers);
      if (round == 0) store->Init(key, grads, /*share=*/false);
      store->Push(key, grads, 0);
      order.push_back({key + 1});
    }
  }
  store->Barrier();
  std::sort(order.begin(), order.end());
  std::sort(seen.sizes.begin(), seen.sizes.end());
  CHECK(seen.sizes == order);
  for (int key = 0; key < 8; ++key) {
    for (const NDArray& value : store->Values(key))
      CHECK(value.ToVector() == std::vector<float>(static_cast<size_t>(key) + 1, 2.f));
  }
}

TEST_CASE("the keys of a bucket are one collective, pushed with the last of them") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = test::NewFakeGpuRuntime(engine);
    Watched::Seen seen;
    const auto store = KVStore::Create(*runtime, "device", kGpus, [&](std::span<const Context>) {
      return std::make_unique<Watched>(&seen);
    });
    const auto numbers = [](int key, float value) {
      return std::vector<float>(static_cast<size_t>(key) + 1, value);
    };
    std::vector<std::vector<NDArray>> values;
    for (int key = 0; key < 5; ++key) {
      values.push_back(OnEach(*runtime, kGpus, numbers(key, 0)));
      store->Init(key, values.back(), /*share=*/true);
    }
    store->SetBuckets({{4, 2}, {3, 1}});
    for (int round = 1; round <= 3; ++round) {
      const auto value = static_cast<float>(round);
      std::vector<std::vector<NDArray>> grads;
      for (int key = 0; key < 5; ++key)
        grads.push_back(OnEach(*runtime, kGpus, numbers(key, value)));
      std::vector<KVStore::KeySums> sums;
      for (int key : {4, 3, 0, 2, 1})
        sums.push_back({key, store->Sum(key, grads[static_cast<size_t>(key)], 0), 0});
      store->Update(sums);
      store->Barrier();
      std::sort(seen.sizes.begin(), seen.sizes.end());
      CHECK(seen.sizes == std::vector<std::vector<int64_t>>{{1}, {4, 2}, {5, 3}});
      seen.sizes.clear();
      for (int key = 0; key < 5; ++key) {
        for (const NDArray& array : values[static_cast<size_t>(key)])
          CHECK(array.ToVector() == numbers(key, 2 * value));
      }
    }
    CHECK_THROWS_WITH(store->SetBuckets({{0}}), "buckets after the first sum, or twice");
  }
}

// As two ranks do (kvstore_dist_test.cc): each GPU rounds, and so does the sum.
TEST_CASE("with the wire in bfloat16 float32 gradients travel in one rounded array of each GPU") {
  const auto rounded = [](float value) { return static_cast<float>(bfloat16(value)); };
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = test::NewFakeGpuRuntime(engine);
    Watched::Seen seen;
    const auto store =
        KVStore::Create(*runtime, "device", kGpus,
                        [&](std::span<const Context>) { return std::make_unique<Watched>(&seen); },
                        nullptr, {.wire = DistOptions::Wire::kBfloat16});
    std::vector<std::vector<NDArray>> values;
    for (const size_t n : {3, 40, 7}) {
      values.push_back(OnEach(*runtime, kGpus, std::vector<float>(n, 0)));
      store->Init(static_cast<int>(values.size()) - 1, values.back(), /*share=*/true);
    }
    store->SetBuckets({{2, 1}});
    for (int round = 1; round <= 3; ++round) {
      std::vector<std::vector<float>> expected;
      std::vector<std::vector<NDArray>> grads;
      std::vector<KVStore::KeySums> sums;
      for (int key = 2; key >= 0; --key) {
        const auto n = static_cast<size_t>(values[static_cast<size_t>(key)][0].shape().Size());
        std::vector<float> first(n), second(n), sum(n);
        for (size_t i = 0; i < n; ++i) {
          first[i] = 1.0F / static_cast<float>(i + static_cast<size_t>(3 * round));
          second[i] = -0.37F * static_cast<float>(i) + static_cast<float>(key);
          sum[i] = rounded(rounded(first[i]) + rounded(second[i]));
        }
        grads.push_back({NDArray::FromVector(*runtime, values[static_cast<size_t>(key)][0].shape(),
                                             first, kGpus[0]),
                         NDArray::FromVector(*runtime, values[static_cast<size_t>(key)][0].shape(),
                                             second, kGpus[1])});
        expected.insert(expected.begin(), sum);
        sums.push_back({key, store->Sum(key, grads.back(), 0), 0});
      }
      store->Update(sums);
      for (size_t key = 0; key < 3; ++key) {
        for (const NDArray& array : values[key]) CHECK(array.ToVector() == expected[key]);
      }
      store->Barrier();
      // Parts of the buffer begin at multiples of 64 bytes.
      std::sort(seen.sizes.begin(), seen.sizes.end());
      CHECK(seen.sizes == std::vector<std::vector<int64_t>>{{32}, {96}});
      CHECK(seen.types == std::vector<DType>(2, DType::kBfloat16));
      seen.sizes.clear();
      seen.types.clear();
    }
  }
}

// The second operation of the step is not issued before the sum of what the first one wrote was.
TEST_CASE("a sum is computed while the step that gave its gradient continues") {
  const auto runtime = test::NewFakeGpuRuntime();
  engine::Engine& engine = runtime->engine();
  std::promise<void> called;
  Watched::Seen seen{.on_call = [&] { called.set_value(); }};
  const auto store = KVStore::Create(*runtime, "device", kGpus, [&](std::span<const Context>) {
    return std::make_unique<Watched>(&seen);
  });
  const std::vector<NDArray> value = OnEach(*runtime, kGpus, {0}),
                             grads = OnEach(*runtime, kGpus, {1});
  const NDArray other = NDArray::Zeros(*runtime, {1}, DType::kFloat32, kGpus[0]);
  store->Init(0, value, /*share=*/true);
  bool in_time = false;
  std::vector<engine::SequenceOp> ops(2);
  for (engine::SequenceOp& op : ops) op.ctx = kGpus[0];
  ops[0].name = "last layer";
  ops[0].fn = [](RunContext) {};
  ops[0].writes = {0};
  ops[1].name = "first layer";
  ops[1].fn = [&](RunContext) {
    in_time = called.get_future().wait_for(std::chrono::minutes(1)) == std::future_status::ready;
  };
  ops[1].after = {0};
  ops[1].writes = {1};
  const engine::SequenceHandle step = engine.NewSequence(std::move(ops), 2);
  engine.Push(step, std::vector{grads[0].var(), other.var()});
  store->Push(0, grads, 0);
  store->Barrier();
  CHECK(in_time);
  CHECK(value[1].ToVector() == std::vector<float>{2});
  engine.DeleteSequence(step);
}

TEST_CASE("a failure of a collective, or of a GPU, reaches the waiter; the rest continues") {
  const auto runtime = test::NewFakeGpuRuntime();
  Watched::Seen seen{.fails_at = 2};
  const auto store = KVStore::Create(*runtime, "device", kGpus, [&](std::span<const Context>) {
    return std::make_unique<Watched>(&seen);
  });
  const std::vector<NDArray> one = OnEach(*runtime, kGpus, {1}),
                             two = OnEach(*runtime, kGpus, {1, 2});
  store->Init(1, one, /*share=*/true);
  store->Init(2, two, /*share=*/true);
  const std::vector<NDArray> ones = OnEach(*runtime, kGpus, {3}),
                             twos = OnEach(*runtime, kGpus, {3, 3});
  store->Push(2, twos, 0);
  store->Push(1, ones, 0);
  CHECK_THROWS_WITH_AS(two[1].ToVector(), doctest::Contains("all_reduce: the link is down"), Error);
  CHECK(one[1].ToVector() == std::vector<float>{6});

  runtime->engine().PushSync(
      [](RunContext ctx) { static_cast<test::FakeStream*>(ctx.stream)->Break("gone"); }, {}, {},
      {.ctx = kGpus[1], .name = "break"});
  const std::vector<NDArray> more = {NDArray::FromVector(*runtime, {1}, {1}, kGpus[0]),
                                     NDArray(*runtime, {1}, DType::kFloat32, kGpus[1])};
  runtime->engine().PushSync([](RunContext) {}, {}, std::vector{more[1].var()},
                             {.ctx = kGpus[1], .name = "gradient"});
  store->Push(1, more, 0);
  CHECK_THROWS_WITH_AS(one[0].ToVector(), doctest::Contains("gone"), Error);
  CHECK_THROWS_AS(store->Barrier(), Error);  // what else depended on that GPU
}

// Pushes and pulls of random keys with gradients computed on their own GPUs, among other work.
std::vector<std::vector<float>> RandomProgram(const char* engine, const char* type, uint32_t seed) {
  const auto runtime = test::NewFakeGpuRuntime(engine);
  const auto store = KVStore::Create(*runtime, type, kGpus, test::NewFakeCommunicator);
  std::mt19937 random(seed);
  constexpr int kKeys = 5;
  std::vector<std::vector<NDArray>> weights, grads;
  for (int key = 0; key < kKeys; ++key) {
    const auto n = static_cast<size_t>(1 + random() % 40);
    std::vector<float> numbers(n);
    for (float& v : numbers) v = static_cast<float>(random() % 100) / 7;
    weights.push_back(OnEach(*runtime, kGpus, numbers));
    grads.push_back(OnEach(*runtime, kGpus, numbers));
    store->Init(key, weights.back(), /*share=*/true);
  }
  store->SetUpdater([](std::span<const KVStore::KeyUpdate> updates) {
    for (const auto& [key, grad, weight, priority] : updates) {
      const NDArray in[] = {weight, grad};
      InvokeInto("_minus", in, {&weight, 1}, OpReqType::kWriteInplace, {}, {}, priority);
    }
  });
  for (int step = 0; step < 60; ++step) {
    const auto key = static_cast<size_t>(random() % kKeys);
    for (size_t w = 0; w < kGpus.size(); ++w) {
      NDArray& grad = grads[key][w];
      grad *= 0.25 * static_cast<double>(w + 1);
      grad += weights[key][w];
      grad *= 0.125;
    }
    store->Push(static_cast<int>(key), grads[key], static_cast<int>(random() % 5));
    store->Pull(static_cast<int>(key), weights[key], static_cast<int>(random() % 5));
    if (random() % 16 == 0) weights[key][random() % 2].WaitToRead();
  }
  std::vector<std::vector<float>> result;
  for (const auto& of_key : weights) {
    result.push_back(of_key[0].ToVector());
    CHECK(of_key[1].ToVector() == result.back());
  }
  return result;
}

TEST_CASE("random programs give the bits of the naive engine") {
  for (uint32_t seed = 1; seed <= 8; ++seed) {
    CAPTURE(seed);
    CHECK(RandomProgram("threaded", "device", seed) == RandomProgram("naive", "device", seed));
    CHECK(RandomProgram("threaded", "local", seed) == RandomProgram("naive", "local", seed));
  }
}

TEST_CASE("what the store cannot do is rejected") {
  const auto runtime = test::NewFakeGpuRuntime();
  const auto create = [&](const std::vector<Context>& workers) {
    KVStore::Create(*runtime, "device", workers, test::NewFakeCommunicator);
  };
  for (const std::vector<Context>& workers : {std::vector<Context>{},
                                              {Context::cpu()},
                                              {Context::gpu(0), Context::gpu(0)},
                                              {Context::gpu(0), Context::cpu()}}) {
    CHECK_THROWS_WITH_AS(create(workers), doctest::Contains("one GPU per worker"), Error);
  }
  const auto store = KVStore::Create(*runtime, "device", kGpus, test::NewFakeCommunicator);
  const std::vector<NDArray> value = OnEach(*runtime, kGpus, {1}), swapped{value[1], value[0]};
  CHECK_THROWS_WITH_AS(store->Init(0, swapped, true), doctest::Contains("in order"), Error);
  const std::vector<NDArray> unlike{value[0], NDArray(*runtime, {1}, DType::kFloat64, kGpus[1])};
  CHECK_THROWS_WITH_AS(store->Init(0, unlike, true),
                       doctest::Contains("has different layouts on gpu(0) and gpu(1)"), Error);
  store->Init(0, value, true);
  CHECK_THROWS_WITH_AS(store->Push(0, {&value[0], 1}, 0), doctest::Contains("one array on each"),
                       Error);
  CHECK_THROWS_WITH_AS(store->Push(1, value, 0), doctest::Contains("key 1"), Error);
  for (const char* type : {"local", "device"}) {
    for (const DistOptions& dist :
         {DistOptions{.wire = DistOptions::Wire::kTwoBit}, DistOptions{.shard_states = true}}) {
      CHECK_THROWS_WITH_AS(
          KVStore::Create(*runtime, type, kGpus, test::NewFakeCommunicator, nullptr, dist),
          doctest::Contains("between processes only"), Error);
    }
    CHECK_THROWS_WITH_AS(KVStore::Create(*runtime, type, {kGpus.data(), 1}, {}, nullptr,
                                         {.wire = DistOptions::Wire::kBfloat16}),
                         doctest::Contains("and there is 1 worker with KVStore"), Error);
  }
  // One GPU needs no communicator.
  const std::vector<Context> one{Context::gpu(1)};
  const auto alone = KVStore::Create(*runtime, "device", one,
                                     [](std::span<const Context>) -> std::unique_ptr<Communicator> {
                                       Throw(ErrorKind::kDevice, "nobody asked for it");
                                     });
  const std::vector<NDArray> single = OnEach(*runtime, one, {4}),
                             gradient = OnEach(*runtime, one, {2});
  alone->Init(0, single, true);
  alone->Push(0, gradient, 0);
  CHECK(single[0].ToVector() == std::vector<float>{2});
}

}  // namespace
}  // namespace mxtrain
