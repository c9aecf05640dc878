// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/math.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>

namespace mxtrain {
namespace {

TEST_CASE("division and rounding go up, found by counting") {
  for (int64_t step = 1; step < 9; ++step) {
    for (int64_t n = 0; n < 40; ++n) {
      int64_t count = 0;
      while (count * step < n) ++count;
      CHECK(CeilDivide(n, step) == count);
      CHECK(RoundUp(n, step) == count * step);
    }
  }
  CHECK(RoundUp(int64_t{1} << 60, 64) == int64_t{1} << 60);
  static_assert(CeilDivide(size_t{9}, 4) == 3);
}

}  // namespace
}  // namespace mxtrain
