// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/resample.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace mxtrain::test {
namespace {

using Matrix = std::vector<std::vector<double>>;  // [out][in]

Matrix Nearest(int64_t in, int64_t factor) {
  Matrix m(static_cast<size_t>(in * factor), std::vector<double>(static_cast<size_t>(in)));
  for (size_t o = 0; o < m.size(); ++o) m[o][o / static_cast<size_t>(factor)] = 1;
  return m;
}

Matrix Linear(int64_t in, int64_t out, bool align_corners) {
  Matrix m(static_cast<size_t>(out), std::vector<double>(static_cast<size_t>(in)));
  const double n = static_cast<double>(in), target = static_cast<double>(out);
  for (size_t o = 0; o < m.size(); ++o) {
    const double at = static_cast<double>(o);
    const double position = !align_corners ? std::max((at + 0.5) * n / target - 0.5, 0.0)
                            : out > 1      ? at * (n - 1) / (target - 1)
                                           : 0;
    // The nearest element may be the one before or the one after a position next to an integer.
    for (size_t i = 0; i < m[o].size(); ++i)
      m[o][i] = std::max(0.0, 1 - std::abs(std::min(position, n - 1) - static_cast<double>(i)));
  }
  return m;
}

Matrix Average(int64_t in, int64_t out) {
  Matrix m(static_cast<size_t>(out), std::vector<double>(static_cast<size_t>(in)));
  for (int64_t o = 0; o < out; ++o) {
    const double scale = static_cast<double>(in) / static_cast<double>(out);
    const auto begin = static_cast<size_t>(std::floor(static_cast<double>(o) * scale + 1e-9)),
               end = static_cast<size_t>(std::ceil(static_cast<double>(o + 1) * scale - 1e-9));
    for (size_t i = begin; i < end; ++i)
      m[static_cast<size_t>(o)][i] = 1 / static_cast<double>(end - begin);
  }
  return m;
}

// The taps are the matrix, their readers its transpose, and the tables hold both.
template <typename Taps>
void CheckTable(const Taps& taps, const Matrix& expected) {
  const TapTable table(taps);
  REQUIRE(table.out == static_cast<int64_t>(expected.size()));
  for (int64_t o = 0; o < table.out; ++o) {
    const std::vector<double>& row = expected[static_cast<size_t>(o)];
    REQUIRE(table.in == static_cast<int64_t>(row.size()));
    std::vector<double> found(row.size());
    for (int64_t k = 0; k < table.count[static_cast<size_t>(o)]; ++k) {
      const double weight = table.doubles.by_output[static_cast<size_t>(o * table.most + k)];
      found[static_cast<size_t>(table.first[static_cast<size_t>(o)] + k)] = weight;
      CHECK(weight > 0);
      if (table.gathered > 0)
        CHECK(table.doubles.by_tap[static_cast<size_t>(k * table.out + o)] == weight);
    }
    for (size_t i = 0; i < row.size(); ++i) CHECK(found[i] == doctest::Approx(row[i]));
  }
}
template <typename Taps>
void CheckTaps(const Taps& taps, const Matrix& expected) {
  CAPTURE(taps.in);
  CAPTURE(taps.out);
  CheckTable(taps, expected);
  Matrix transposed(static_cast<size_t>(taps.in), std::vector<double>(expected.size()));
  for (size_t o = 0; o < expected.size(); ++o) {
    for (size_t i = 0; i < expected[o].size(); ++i) transposed[i][o] = expected[o][i];
  }
  CheckTable(Readers<Taps>(taps), transposed);
}

TEST_CASE("Taps are the matrix of their definition") {
  for (int64_t in = 1; in <= 9; ++in) {
    for (int64_t factor = 1; factor <= 4; ++factor)
      CheckTaps(NearestTaps(in, factor), Nearest(in, factor));
    for (int64_t out = 1; out <= 20; ++out) {
      CheckTaps(LinearTaps(in, out, true), Linear(in, out, true));
      CheckTaps(LinearTaps(in, out, false), Linear(in, out, false));
      CheckTaps(AverageTaps{in, out}, Average(in, out));
    }
  }
}

TEST_CASE("Taps between lengths far apart") {
  CheckTaps(LinearTaps(100, 3, false), Linear(100, 3, false));
  CheckTaps(LinearTaps(100, 3, true), Linear(100, 3, true));
  CheckTaps(LinearTaps(2, 100, false), Linear(2, 100, false));
  CheckTaps(AverageTaps{100, 1}, Average(100, 1));
}

TEST_CASE("Tables know the patterns that have loops of their own") {
  using Pattern = TapTable::Pattern;
  CHECK(TapTable(NearestTaps(5, 2)).pattern == Pattern::kRepeatTwice);
  CHECK(TapTable(Readers<NearestTaps>(NearestTaps(5, 2))).pattern == Pattern::kSumPairs);
  CHECK(TapTable(NearestTaps(5, 3)).pattern == Pattern::kAny);
  CHECK(TapTable(LinearTaps(5, 10, false)).pattern == Pattern::kAny);
  CHECK(TapTable(AverageTaps{10, 5}).pattern == Pattern::kAny);
  CHECK(TapTable(AverageTaps{5, 10}).pattern == Pattern::kRepeatTwice);
}

}  // namespace
}  // namespace mxtrain::test
