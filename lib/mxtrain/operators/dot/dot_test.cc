// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The sum over k of a(i.., k) b(k, j..) by definition; `m`, `k`, `n`: lengths of the three groups
// of axes.
Values Product(const Values& a, const Values& b, int64_t m, int64_t k, int64_t n, bool transpose_a,
               bool transpose_b) {
  Values c(static_cast<size_t>(m * n), 0.0);
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      for (int64_t l = 0; l < k; ++l)
        c[i * n + j] +=
            a[transpose_a ? l * m + i : i * k + l] * b[transpose_b ? j * k + l : l * n + j];
    }
  }
  return c;
}

void ExamineDot(const TShape& a, const TShape& b, int64_t m, int64_t k, int64_t n,
                bool transpose_a = false, bool transpose_b = false) {
  OperatorCase c;
  c.op = "dot";
  c.name = format("dot {} {}", a.ToString(), b.ToString());
  c.kwargs = {{"transpose_a", transpose_a ? "True" : "False"},
              {"transpose_b", transpose_b ? "True" : "False"}};
  c.shapes = {a, b};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Product(in[0], in[1], m, k, n, transpose_a, transpose_b)};
  };
  c.types = kAllFloatingTypes;
  if (m * k * n > 0) c.must_accept = {"ref", "onednn"};
  c.tolerance = {32, "sums of up to 70 products in float32, in any order"};
  RunCase(c);
}

TEST_CASE("products of vectors, matrices and more") {
  ExamineDot({7}, {7}, 1, 7, 1);
  ExamineDot({3, 5}, {5}, 3, 5, 1);
  ExamineDot({5}, {5, 2}, 1, 5, 2);
  ExamineDot({4, 70}, {70, 67}, 4, 70, 67);
  ExamineDot({70, 4}, {70, 67}, 4, 70, 67, true, false);
  ExamineDot({4, 70}, {67, 70}, 4, 70, 67, false, true);
  ExamineDot({70, 4}, {67, 70}, 4, 70, 67, true, true);
  ExamineDot({5, 1}, {1, 5}, 1, 5, 1, true, true);
  ExamineDot({1, 6}, {5, 1}, 6, 1, 5, true, true);
  ExamineDot({2, 3, 4}, {4, 5, 2}, 6, 4, 10);
  ExamineDot({3, 0}, {0, 2}, 3, 0, 2);
  ExamineDot({1, 1}, {1, 1}, 1, 1, 1);
}

TEST_CASE("errors name mismatched shapes") {
  const auto dot = TestRegistry().Create("dot", {{"transpose_b", "1"}});
  std::vector<TShape> in = {TShape{2, 3}, TShape{3, 4}}, out(1), aux;
  CHECK_THROWS_WITH(dot->InferShape(&in, &out, &aux),
                    "dot: axis 1 of lhs [2, 3] and axis 1 of rhs [3, 4] must have equal lengths");
}

}  // namespace
}  // namespace mxtrain::test
