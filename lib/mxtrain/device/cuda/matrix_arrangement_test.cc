// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/matrix_arrangement.h"

#include <doctest/doctest.h>

#include <cstddef>
#include <vector>

namespace mxtrain::cuda {
namespace {

using Elements = std::vector<double>;

// gemm as cuBLAS documents it.
void Gemm(const ProductArrangement& p, const Elements& first, const Elements& second,
          Elements* out) {
  const auto at = [](const Elements& x, const Factor& f, int64_t row, int64_t column) {
    return x[static_cast<size_t>(f.transposed ? row * f.leading + column
                                              : row + column * f.leading)];
  };
  for (int64_t i = 0; i < p.m; ++i) {
    for (int64_t j = 0; j < p.n; ++j) {
      double sum = 0;
      for (int64_t k = 0; k < p.k; ++k)
        sum += at(first, p.first, i, k) * at(second, p.second, k, j);
      (*out)[static_cast<size_t>(i + j * p.leading)] = sum;
    }
  }
}

MatrixPlaces Places(int64_t rows, int64_t columns, bool by_columns) {
  return by_columns ? MatrixPlaces{rows, columns, 1, rows}
                    : MatrixPlaces{rows, columns, columns, 1};
}

Elements Numbers(int64_t n, int64_t start) {
  Elements x;
  for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<double>((start + i * 7) % 11 - 5));
  return x;
}

double ElementAt(const Elements& x, const MatrixPlaces& p, int64_t row, int64_t column) {
  return x[static_cast<size_t>(row * p.row_stride + column * p.column_stride)];
}

TEST_CASE("a product is arranged for every order of its three matrices and every length") {
  for (const int64_t m : {1, 2, 5}) {
    for (const int64_t k : {1, 3, 4}) {
      for (const int64_t n : {1, 2, 6}) {
        for (int order = 0; order < 8; ++order) {
          const MatrixPlaces a = Places(m, k, order & 1), b = Places(k, n, order & 2),
                             c = Places(m, n, order & 4);
          const Elements x = Numbers(m * k, 1), y = Numbers(k * n, 3);
          Elements z(static_cast<size_t>(m * n), -100);
          const ProductArrangement p = Arrange(a, b, c);
          CHECK(p.first.leading >= (p.first.transposed ? p.k : p.m));
          CHECK(p.second.leading >= (p.second.transposed ? p.n : p.k));
          CHECK(p.leading >= p.m);
          Gemm(p, p.swapped ? y : x, p.swapped ? x : y, &z);
          for (int64_t i = 0; i < m; ++i) {
            for (int64_t j = 0; j < n; ++j) {
              double sum = 0;
              for (int64_t l = 0; l < k; ++l) sum += ElementAt(x, a, i, l) * ElementAt(y, b, l, j);
              CHECK(ElementAt(z, c, i, j) == sum);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace mxtrain::cuda
