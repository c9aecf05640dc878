// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineGemm(const TShape& a, const TShape& b, bool transpose_a, bool transpose_b) {
  OperatorCase c;
  c.op = "linalg_gemm2";
  c.name = format("linalg_gemm2 {} {}", a.ToString(), b.ToString());
  c.kwargs = {{"alpha", "0.5"},
              {"transpose_a", transpose_a ? "1" : "0"},
              {"transpose_b", transpose_b ? "1" : "0"}};
  c.shapes = {a, b};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const int last = a.ndim() - 1;
    const int64_t rows = transpose_a ? a[last] : a[last - 1],
                  inner = transpose_a ? a[last - 1] : a[last],
                  columns = transpose_b ? b[last - 1] : b[last];
    Values y;
    for (int64_t batch = 0; batch < a.Product(0, last - 1); ++batch) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < columns; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < inner; ++k) {
            sum += in[0][batch * rows * inner + (transpose_a ? k * rows + i : i * inner + k)] *
                   in[1][batch * inner * columns + (transpose_b ? j * inner + k : k * columns + j)];
          }
          y.push_back(0.5 * sum);
        }
      }
    }
    return Arrays{y};
  };
  c.tolerance = {32, "sums of products"};
  RunCase(c);
}

TEST_CASE("linalg_gemm2 by its definition") {
  ExamineGemm({3, 4}, {4, 5}, false, false);
  ExamineGemm({2, 3, 4}, {2, 5, 4}, false, true);
  ExamineGemm({2, 3, 4, 6}, {2, 3, 4, 5}, true, false);
  ExamineGemm({2, 1, 4, 3}, {2, 1, 5, 4}, true, true);
  ExamineGemm({3, 0}, {0, 4}, false, false);
  ExamineGemm({2, 0, 3, 4}, {2, 0, 4, 5}, false, false);
}

TEST_CASE("linalg_gemm2: batches must agree") {
  std::vector<TShape> in = {TShape{2, 3, 4}, TShape{3, 4, 5}}, out(1), aux;
  CHECK_THROWS_WITH(TestRegistry().Create("linalg_gemm2", {})->InferShape(&in, &out, &aux),
                    doctest::Contains("must have the same axes before the last two"));
}

}  // namespace
}  // namespace mxtrain::test
