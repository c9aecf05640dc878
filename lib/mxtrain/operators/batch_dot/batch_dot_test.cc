// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// [.., m, k] x [.., k, n] by its definition.
void ExamineBatchDot(const TShape& leading, int64_t m, int64_t k, int64_t n,
                     bool transpose_a = false, bool transpose_b = false) {
  const auto shape = [&](int64_t rows, int64_t columns) {
    std::vector<int64_t> dims(leading.begin(), leading.end());
    dims.push_back(rows);
    dims.push_back(columns);
    return TShape(dims);
  };
  OperatorCase c;
  c.op = "batch_dot";
  c.shapes = {transpose_a ? shape(k, m) : shape(m, k), transpose_b ? shape(n, k) : shape(k, n)};
  c.name = format("batch_dot {} {}", c.shapes[0].ToString(), c.shapes[1].ToString());
  c.kwargs = {{"transpose_a", transpose_a ? "True" : "False"},
              {"transpose_b", transpose_b ? "True" : "False"}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t b = 0; b < leading.Size(); ++b) {
      const double *left = in[0].data() + b * m * k, *right = in[1].data() + b * k * n;
      for (int64_t i = 0; i < m; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < k; ++l)
            sum += left[transpose_a ? l * m + i : i * k + l] *
                   right[transpose_b ? j * k + l : l * n + j];
          y.push_back(sum);
        }
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  if (leading.Size() * m * k * n > 0) c.must_accept = {"ref", "onednn"};
  c.tolerance = {32, "sums of up to 70 products in float32, in any order"};
  RunCase(c);
}

TEST_CASE("batch_dot") {
  ExamineBatchDot({3}, 4, 5, 2);
  ExamineBatchDot({3}, 4, 5, 2, true, false);
  ExamineBatchDot({3}, 4, 5, 2, false, true);
  ExamineBatchDot({2}, 3, 70, 67, true, true);
  ExamineBatchDot({2, 3}, 3, 4, 5);
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      ExamineBatchDot({3}, 1, 5, 4, transpose_a, transpose_b);
      ExamineBatchDot({3}, 4, 1, 5, transpose_a, transpose_b);
      ExamineBatchDot({3}, 4, 5, 1, transpose_a, transpose_b);
      ExamineBatchDot({3}, 1, 5, 1, transpose_a, transpose_b);
    }
  }
  ExamineBatchDot({1}, 1, 1, 1);
  ExamineBatchDot({0}, 2, 3, 4);
  ExamineBatchDot({2}, 3, 0, 4);
}

TEST_CASE("batch_dot: errors name mismatched shapes") {
  const auto infer = [](const TShape& a, const TShape& b) {
    std::vector<TShape> in = {a, b}, out(1), aux;
    TestRegistry().Create("batch_dot", {})->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(
      infer({2, 3}, {3, 4}),
      "batch_dot: lhs [2, 3] and rhs [3, 4] must have the same number of axes, three or more");
  CHECK_THROWS_WITH(
      infer({2, 3, 4}, {1, 4, 5}),
      "batch_dot: lhs [2, 3, 4] and rhs [1, 4, 5] must match in all axes except the last two");
  CHECK_THROWS_WITH(
      infer({2, 3, 4}, {2, 3, 4}),
      "batch_dot: lhs [2, 3, 4] and rhs [2, 3, 4] must have summed axes of equal length");
}

}  // namespace
}  // namespace mxtrain::test
