// SPDX-License-Identifier: Apache-2.0
// The examples of MXNet's KVStore, with this store: keys are integers, values are arrays, a push of
// several arrays (one per worker) is their sum, and an updater says what a push does to the value.
#include <doctest/doctest.h>

#include "mxtrain/kvstore/mxnet_kvstore.h"
#include "mxtrain/operator/arithmetic.h"

namespace mxtrain {
namespace {

struct MxnetStore {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  std::unique_ptr<KVStore> kv = KVStore::Create(runtime, "local");

  NDArray Filled(double value) {
    NDArray array(runtime, TShape{2, 3});
    array = value;
    return array;
  }
  void Init(int key, const NDArray& value) { kv->Init(key, {&value, 1}, /*share=*/false); }
  void Push(int key, const NDArray& value) { kv->Push(key, {&value, 1}, /*priority=*/-key); }
  // What a pull gives, if all its elements are equal.
  float Pull(int key) {
    const NDArray a = Filled(-1);
    kv->Pull(key, {&a, 1}, /*priority=*/-key);
    const std::vector<float> values = a.ToVector();
    for (const float value : values) CHECK(value == values[0]);
    return values[0];
  }
};

TEST_CASE_FIXTURE(MxnetStore, "init, then pull; a push replaces the value") {
  Init(3, Filled(2));
  CHECK(Pull(3) == 2);
  Push(3, Filled(8));
  CHECK(Pull(3) == 8);
}

TEST_CASE_FIXTURE(MxnetStore, "arrays of several workers are summed, then pulled by all of them") {
  Init(3, Filled(2));
  const std::vector<NDArray> workers(4, Filled(1));
  kv->Push(3, workers, 0);
  const NDArray a[] = {Filled(0), Filled(0), Filled(0), Filled(0)};
  kv->Pull(3, a, 0);
  for (const NDArray& array : a) CHECK(array.ToVector() == std::vector<float>(6, 4));
}

TEST_CASE_FIXTURE(MxnetStore, "an updater: stored += 2 input") {
  Init(3, Filled(4));
  std::vector<int> updated;
  kv->SetUpdater([&updated](std::span<const KVStore::KeyUpdate> keys) {
    for (const auto& [key, input, stored, priority] : keys) {
      updated.push_back(key);
      NDArray local = stored;
      local += input * 2;
    }
  });
  CHECK(Pull(3) == 4);
  Push(3, Filled(1));
  CHECK(Pull(3) == 6);
  CHECK(updated == std::vector<int>{3});
}

TEST_CASE_FIXTURE(MxnetStore, "a list of keys is a loop") {
  const std::vector<int> keys{5, 7, 9};
  for (const int key : keys) Init(key, Filled(1));
  for (const int key : keys) Push(key, Filled(key));
  for (const int key : keys) CHECK(Pull(key) == static_cast<float>(key));
}

// while (1) { kv.pull(net.w); net.forward_backward(); kv.push(net.g); }, with the loss
// (w - 5)^2 / 2 per element and two workers.
TEST_CASE_FIXTURE(MxnetStore, "the loop of a training with an updater that descends") {
  Init(0, Filled(1));
  kv->SetUpdater([](std::span<const KVStore::KeyUpdate> keys) {
    for (const auto& [key, gradient, weight, priority] : keys) {
      NDArray local = weight;
      local -= gradient * 0.25;
    }
  });
  const NDArray w[] = {Filled(0), Filled(0)};
  for (int step = 0; step < 4; ++step) {
    kv->Pull(0, w, 0);
    const NDArray g[] = {w[0] - 5, w[1] - 5};
    kv->Push(0, g, 0);
  }
  CHECK(Pull(0) == 4.75f);  // the distance to 5 halves in each step
}

TEST_CASE_FIXTURE(MxnetStore, "lists of keys, of which one may have several arrays") {
  mxnet::KVStore store(*kv);
  store.Init({5, 7, 9}, {Filled(1), Filled(2), Filled(3)});
  store.Push({9, 5, 5, 7, 5}, {Filled(10), Filled(1), Filled(2), Filled(20), Filled(4)});
  CHECK(Pull(5) == 7);
  CHECK(Pull(7) == 20);
  CHECK(Pull(9) == 10);
  store.set_updater(
      [](int key, const NDArray& received, NDArray* local) { *local += received * key; });
  store.Push({7, 9}, {Filled(1), Filled(1)});
  NDArray a = Filled(0), b = Filled(0), c = Filled(0);
  store.Pull({7, 9, 7}, {&a, &b, &c});
  CHECK(a.ToVector()[0] == 27);
  CHECK(b.ToVector()[5] == 19);
  CHECK(c.ToVector()[0] == 27);
  store.Push(5, Filled(1));
  store.Pull(5, &a);
  CHECK(a.ToVector()[0] == 12);
  CHECK_THROWS_WITH_AS(store.Push({5, 7}, {Filled(1)}),
                       "KVStore Push of 2 keys with 1 arrays; give one array for each key", Error);
}

}  // namespace
}  // namespace mxtrain
