// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/staleness.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace mxtrain {
namespace {

TEST_CASE("with a bound of ranks - 1 each rank updates once before any does again") {
  StalenessBound bound(3, 2);
  bound.Begin();
  CHECK(bound.Apply(1) == 0);
  CHECK_FALSE(bound.Admits(1));
  CHECK(bound.Apply(0) == 1);
  CHECK_FALSE(bound.Admits(0));
  CHECK_FALSE(bound.Admits(1));
  CHECK(bound.Apply(2) == 2);
  CHECK(bound.Apply(1) == 2);
}

TEST_CASE("a rank that rests keeps nobody waiting") {
  StalenessBound bound(2, 1);
  bound.StartAt(10);
  bound.Begin();
  CHECK(bound.Apply(0) == 0);
  CHECK_FALSE(bound.Admits(0));
  bound.Rest(1);
  for (int i = 0; i < 5; ++i) CHECK(bound.Apply(0) == 0);
  CHECK(bound.updates() == 16);
  bound.Begin();
  CHECK(bound.Apply(0) == 0);
  CHECK_FALSE(bound.Admits(0));
}

// Whether some order of the ranks' next updates keeps all within the bound, by trying all orders.
bool SomeOrderFits(int64_t updates, std::vector<int64_t> reads, int64_t most) {
  std::sort(reads.begin(), reads.end());
  do {
    bool fits = true;
    for (size_t i = 0; i < reads.size(); ++i)
      fits &= updates + static_cast<int64_t>(i) - reads[i] <= most;
    if (fits) return true;
  } while (std::next_permutation(reads.begin(), reads.end()));
  return false;
}

TEST_CASE("an update is admitted exactly if the other ranks' can still follow within the bound") {
  std::mt19937 random(3);
  for (int ranks : {1, 2, 3, 5}) {
    for (int64_t most : {ranks - 1, ranks, 3 * ranks}) {
      StalenessBound bound(ranks, most);
      bound.Begin();
      int64_t updates = 0;
      std::vector<int64_t> reads(static_cast<size_t>(ranks));
      for (int step = 0; step < 300; ++step) {
        // Some ranks are faster than others.
        const auto rank = static_cast<size_t>(std::min(random() % static_cast<unsigned>(ranks),
                                                       random() % static_cast<unsigned>(ranks)));
        std::vector<int64_t> others = reads;
        others.erase(others.begin() + static_cast<std::ptrdiff_t>(rank));
        const bool admits = bound.Admits(static_cast<int>(rank));
        CHECK(admits == SomeOrderFits(updates + 1, others, most));
        const auto oldest =
            static_cast<int>(std::min_element(reads.begin(), reads.end()) - reads.begin());
        CHECK(bound.Admits(oldest));  // so that no ranks wait for each other
        if (!admits) continue;
        const int64_t staleness = bound.Apply(static_cast<int>(rank));
        CHECK(staleness == updates - reads[rank]);
        CHECK(staleness <= most);
        reads[rank] = ++updates;
      }
    }
  }
}

}  // namespace
}  // namespace mxtrain
