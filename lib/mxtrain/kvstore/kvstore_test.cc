// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/kvstore.h"

#include <doctest/doctest.h>

#include <cmath>
#include <future>

#include "mxtrain/base/error.h"
#include "mxtrain/operator/arithmetic.h"

namespace mxtrain {
namespace {

struct LocalStore {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  NDArray Array(const std::vector<float>& values) {
    return NDArray::FromVector(runtime, TShape{static_cast<int64_t>(values.size())}, values);
  }
};

TEST_CASE_FIXTURE(LocalStore, "pushes of several workers are summed, and pulled by all") {
  const auto store = KVStore::Create(runtime, "local");
  const NDArray value = Array({1, 2, 3});
  store->Init(5, {&value, 1}, /*share=*/false);
  const NDArray grads[] = {Array({10, 20, 30}), Array({1, 1, 1}), Array({0.5, 0.25, 0.125})};
  store->Push(5, grads, 0);
  const NDArray out[] = {Array({0, 0, 0}), Array({9, 9, 9})};
  store->Pull(5, out, 0);
  for (const NDArray& array : out)
    CHECK(array.ToVector() == std::vector<float>{11.5f, 21.25f, 31.125f});
  CHECK(value.ToVector() == std::vector<float>{1, 2, 3});  // the store has its own
  store->Barrier();
  CHECK(store->rank() == 0);
  CHECK(store->num_workers() == 1);
}

TEST_CASE_FIXTURE(
    LocalStore, "an updater gets the sum and the value; a shared value is the caller's own array") {
  const auto store = KVStore::Create(runtime, "local");
  const NDArray value = Array({1, 2});
  store->Init(0, {&value, 1}, /*share=*/true);
  std::vector<int> keys;
  store->SetUpdater([&](std::span<const KVStore::KeyUpdate> updates) {
    for (const auto& [key, received, local, priority] : updates) {
      keys.push_back(key);
      NDArray target = local, part = received;
      part *= -0.5;
      target += part;
    }
  });
  const NDArray grads[] = {Array({2, 4}), Array({2, 8})};
  store->Push(0, grads, 0);
  store->Push(0, grads, 0);
  CHECK(keys == std::vector<int>{0, 0});
  CHECK(value.ToVector() == std::vector<float>{-3, -10});
  const NDArray out[] = {value, Array({0, 0})};
  store->Pull(0, out, 0);
  CHECK(out[1].ToVector() == std::vector<float>{-3, -10});
}

TEST_CASE_FIXTURE(LocalStore, "a part of the array that the store shares is not the value") {
  const auto store = KVStore::Create(runtime, "local");
  const NDArray both = Array({1, 2, 3, 4});
  const NDArray value = both.Slice(0, 2);
  store->Init(0, {&value, 1}, /*share=*/true);
  const NDArray out[] = {both.Slice(0, 2), both.Slice(2, 4)};
  store->Pull(0, out, 0);
  CHECK(both.ToVector() == std::vector<float>{1, 2, 1, 2});
}

TEST_CASE_FIXTURE(LocalStore, "pulls run in order of priority") {
  const auto store = KVStore::Create(runtime, "local");
  const NDArray values[] = {Array({1}), Array({2})};
  const NDArray out[] = {Array({0}), Array({0})};
  for (int key : {0, 1}) store->Init(key, {&values[key], 1}, /*share=*/true);
  runtime.engine().WaitForAll();

  std::promise<void> go;
  runtime.engine().PushSync([&go](RunContext) { go.get_future().wait(); }, {}, {},
                            {.priority = 1000, .name = "gate"});
  std::vector<int> arrived;  // written by the one worker, read after a wait
  store->Pull(0, {&out[0], 1}, 0);
  store->Pull(1, {&out[1], 1}, 1);
  for (int key : {0, 1}) {
    const engine::VarHandle reads[] = {out[key].var()};
    runtime.engine().PushSync([&arrived, key](RunContext) { arrived.push_back(key); }, reads, {},
                              {.priority = 100, .name = "arrived"});
  }
  go.set_value();
  runtime.engine().WaitForAll();
  CHECK(arrived == std::vector<int>{1, 0});
}

TEST_CASE_FIXTURE(LocalStore, "misuse and other types of store are rejected by name") {
  const auto store = KVStore::Create(runtime, "local");
  const NDArray value[] = {Array({1})};
  store->Init(1, value, false);
  CHECK_THROWS_AS(store->Init(1, value, false), Error);
  CHECK_THROWS_WITH(store->Push(2, value, 0), doctest::Contains("key 2"));
  CHECK_THROWS_AS(store->Push(1, {}, 0), Error);
  CHECK_THROWS_WITH(KVStore::Create(runtime, "dist_sync"), doctest::Contains("without a group"));
  CHECK_THROWS_WITH(KVStore::Create(runtime, "dist_async"), doctest::Contains("without a group"));
  CHECK_THROWS_WITH(KVStore::Create(runtime, "device"), doctest::Contains("one GPU per worker"));
  CHECK_THROWS_WITH(KVStore::Create(runtime, "locl"), doctest::Contains("did you mean 'local'?"));
}

// One element under the published rule, in double.
struct KnownRule {
  std::string name;
  Kwargs params;
  double momentum = 0, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  double w = 0, m = 0, v = 0;

  void Update(double g, double lr, int step) {
    const double correction = std::sqrt(1 - std::pow(beta2, step)) / (1 - std::pow(beta1, step));
    if (name == "sgd") {
      m = momentum * m - lr * (g + decay * w);
      w += m;
    } else if (name == "nag") {
      m = momentum * m - lr * (g + decay * w);
      w += momentum * m - lr * (g + decay * w);
    } else {
      const bool apart = name == "adamw";
      const double gradient = apart ? g : g + decay * w;
      m = beta1 * m + (1 - beta1) * gradient;
      v = beta2 * v + (1 - beta2) * gradient * gradient;
      w -= lr * correction * m / (std::sqrt(v) + epsilon) + (apart ? lr * decay * w : 0);
    }
  }
};

TEST_CASE_FIXTURE(LocalStore, "ten updates follow each rule in double") {
  const Kwargs decay{{"weight_decay", "0.1"}};
  const Kwargs momentum{{"weight_decay", "0.1"}, {"momentum", "0.9"}};
  for (const KnownRule& rule :
       {KnownRule{"sgd", decay, 0}, KnownRule{"sgd", momentum, 0.9},
        KnownRule{"nag", momentum, 0.9}, KnownRule{"adam", decay}, KnownRule{"adamw", decay}}) {
    CAPTURE(rule.name);
    const std::vector<float> start{0.5f, -2, 3};
    const NDArray weight = Array(start), bias = Array({1});
    OptimizerUpdater updater(runtime, Optimizer::Create(rule.name, rule.params),
                             {{"fc_weight", {weight}, {1, 1}}, {"fc_bias", {bias}, {0.5, 0}}},
                             /*rescale_grad=*/0.25);
    std::vector<KnownRule> elements(4, rule);
    for (size_t i = 0; i < 3; ++i) {
      elements[i].w = start[i];
      elements[i].decay = 0.1;
    }
    elements[3].w = 1;
    for (int step = 0; step < 10; ++step) {
      const std::vector<float> g{static_cast<float>(step) - 4, 8.f / static_cast<float>(step + 1),
                                 static_cast<float>(step % 3)};
      const double lr = 0.1 / (step + 1);
      updater.BeginStep(step, lr);
      const NDArray grads[] = {Array(g), Array({g[0]})};
      const KVStore::KeyUpdate updates[] = {{0, grads[0], weight, 0}, {1, grads[1], bias, 0}};
      updater.Update(updates);
      for (size_t i = 0; i < 3; ++i) elements[i].Update(0.25 * g[i], lr, step + 1);
      elements[3].Update(0.25 * g[0], 0.5 * lr, step + 1);
    }
    const std::vector<float> got = weight.ToVector();
    for (size_t i = 0; i < 3; ++i) CHECK(got[i] == doctest::Approx(elements[i].w).epsilon(1e-5));
    CHECK(bias.ToVector()[0] == doctest::Approx(elements[3].w).epsilon(1e-5));
    CHECK(updater.States().size() == 2 * static_cast<size_t>(updater.optimizer().NumStates()));
  }
}

TEST_CASE_FIXTURE(
    LocalStore,
    "clipping by global norm scales all gradients alike, and does not change small ones") {
  const NDArray a = Array({1, 1}), b = Array({1});
  OptimizerUpdater updater(runtime, Optimizer::Create("sgd", {}),
                           {{"a_weight", {a}, {}}, {"b_weight", {b}, {}}}, /*rescale_grad=*/0.5);
  const NDArray grads[] = {Array({6, 0}), Array({8})};  // of norm 10, scaled 5
  const KVStore::KeySums sums[] = {{0, std::span(&grads[0], 1), 0},
                                   {1, std::span(&grads[1], 1), 0}};
  const KVStore::KeyUpdate updates[] = {{0, grads[0], a, 0}, {1, grads[1], b, 0}};
  const auto step = [&](double max_norm) {
    NDArray(a).Fill(1);
    NDArray(b).Fill(1);
    updater.BeginStep(0, 1);
    updater.ClipGlobalNorm(sums, max_norm);
    updater.Update(updates);
    const std::vector<float> x = a.ToVector(), y = b.ToVector();
    return std::vector<double>{x[0], x[1], y[0]};
  };
  const std::vector<double> clipped = step(2), whole = step(6);
  CHECK(clipped[0] == doctest::Approx(1 - 2.0 * 3 / 5));
  CHECK(clipped[1] == 1);
  CHECK(clipped[2] == doctest::Approx(1 - 2.0 * 4 / 5));
  CHECK(whole == std::vector<double>{-2, 1, -3});
  // The norm is recomputed for the gradients of the next step.
  for (NDArray grad : grads) grad *= 0.5;
  const std::vector<double> next = step(2);
  CHECK(next[0] == doctest::Approx(1 - 2.0 * 3 / 5));
  CHECK(next[2] == doctest::Approx(1 - 2.0 * 4 / 5));
}

}  // namespace
}  // namespace mxtrain
