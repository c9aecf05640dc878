// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/recycler.h"

#include <doctest/doctest.h>

#include <optional>
#include <thread>

namespace mxtrain {
namespace {

struct Numbers {
  std::vector<int> values;
  void Clear() { values.clear(); }
};

TEST_CASE("a returned object is empty, keeps its memory, and is taken next") {
  Recycler<Numbers> recycler;
  const Numbers* first = nullptr;
  {
    auto a = recycler.Take();
    a->values.assign(100, 7);
    first = &*a;
    CHECK(&*recycler.Take() != first);
  }
  auto again = recycler.Take();
  CHECK(&*again == first);
  CHECK(again->values.empty());
  CHECK(again->values.capacity() >= 100);
}

TEST_CASE("an object may outlive its recycler and be returned by another thread") {
  std::optional<Recycler<Numbers>::Lease> kept;
  {
    Recycler<Numbers> recycler;
    kept.emplace(recycler.Take());
    for (int i = 0; i < 1000; ++i)
      std::thread([lease = recycler.Take()] { lease->values.push_back(1); }).join();
  }
  (*kept)->values.push_back(1);
  CHECK((*kept)->values.size() == 1);
}

}  // namespace
}  // namespace mxtrain
