// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("shuffle: every row once, in another order, and gradients go back") {
  constexpr int64_t kRows = 200, kLength = 3;
  OperatorCase c;
  c.op = "shuffle";
  c.name = "shuffle";
  c.shapes = {{kRows, kLength}};
  c.inputs = {[](int64_t size, uint64_t) {  // the row's number, in 16-bit types too
    Values x;
    for (int64_t i = 0; i < size; ++i) x.push_back(static_cast<double>(i / kLength));
    return x;
  }};
  c.types = kAllFloatingTypes;
  c.check = [](const CaseResult& r) {
    std::vector<std::string> problems;
    std::vector<bool> seen(kRows);
    int64_t moved = 0, later = 0;
    for (int64_t i = 0; i < kRows; ++i) {
      const double* y = &r.out[0][static_cast<size_t>(i * kLength)];
      const auto row = static_cast<int64_t>(std::lround(y[0]));
      if (row < 0 || row >= kRows || seen[static_cast<size_t>(row)] || y[1] != y[0] ||
          y[2] != y[0]) {
        problems.push_back(format("row {} is {}", i, y[0]));
        continue;
      }
      seen[static_cast<size_t>(row)] = true;
      moved += row != i;
      later += row > i;
      for (int64_t k = 0; k < kLength; ++k) {
        if (r.in_grad[0][static_cast<size_t>(row * kLength + k)] !=
            r.head[0][static_cast<size_t>(i * kLength + k)])
          problems.push_back(format("gradient of row {}", row));
      }
    }
    // A random permutation has about one fixed point, and as many rows from below as from above.
    if (moved < kRows - 10 || later < kRows / 4 || later > 3 * kRows / 4)
      problems.push_back(format("{} rows moved, {} from below", moved, later));
    return problems;
  };
  RunCase(c);
  c.shapes = {{0, 3}};
  c.check = [](const CaseResult&) { return std::vector<std::string>(); };
  RunCase(c);
}

}  // namespace
}  // namespace mxtrain::test
