// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/executor/freeze.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace mxtrain::executor {
namespace {

using Matrix = std::vector<std::vector<bool>>;

bool Overlap(const std::vector<ByteRange>& a, const std::vector<ByteRange>& b) {
  return std::any_of(a.begin(), a.end(), [&](const ByteRange& x) {
    return std::any_of(b.begin(), b.end(), [&](const ByteRange& y) {
      return x.space == y.space && std::max(x.begin, y.begin) < std::min(x.end, y.end);
    });
  });
}

// [later][earlier]: must run in that order, directly.
Matrix Conflicts(const std::vector<Access>& operations) {
  Matrix conflicts(operations.size(), std::vector<bool>(operations.size()));
  for (size_t b = 0; b < operations.size(); ++b) {
    for (size_t a = 0; a < b; ++a) {
      const Access &x = operations[a], &y = operations[b];
      conflicts[b][a] =
          Overlap(x.writes, y.writes) || Overlap(x.writes, y.reads) || Overlap(x.reads, y.writes);
    }
  }
  return conflicts;
}

Matrix Closure(Matrix m) {
  for (size_t k = 0; k < m.size(); ++k) {
    for (size_t b = 0; b < m.size(); ++b) {
      if (!m[b][k]) continue;
      for (size_t a = 0; a < m.size(); ++a) m[b][a] = m[b][a] || m[k][a];
    }
  }
  return m;
}

Matrix ToMatrix(const std::vector<std::vector<int>>& edges) {
  Matrix m(edges.size(), std::vector<bool>(edges.size()));
  for (size_t b = 0; b < edges.size(); ++b) {
    for (int a : edges[b]) m[b][static_cast<size_t>(a)] = true;
  }
  return m;
}

std::vector<Access> RandomOperations(std::mt19937& random) {
  const auto below = [&random](int n) {
    return static_cast<int>(random() % static_cast<unsigned>(n));
  };
  const int spaces = 1 + below(3), bytes = 1 + below(40);
  std::vector<Access> operations(static_cast<size_t>(1 + below(40)));
  for (Access& operation : operations) {
    for (std::vector<ByteRange>* ranges : {&operation.reads, &operation.writes}) {
      for (int n = below(3); n > 0; --n) {
        const int64_t begin = below(bytes);
        ranges->push_back({below(spaces), begin, begin + below(8)});  // empty ones too
      }
    }
  }
  return operations;
}

TEST_CASE("edges order exactly what conflicts order") {
  std::mt19937 random(7);
  for (int round = 0; round < 400; ++round) {
    CAPTURE(round);
    const std::vector<Access> operations = RandomOperations(random);
    const auto edges = FindEdges(operations);
    REQUIRE(edges.size() == operations.size());
    CHECK(Closure(ToMatrix(edges)) == Closure(Conflicts(operations)));
  }
}

TEST_CASE("edges are ascending, point back, and none is redundant") {
  std::mt19937 random(8);
  for (int round = 0; round < 100; ++round) {
    CAPTURE(round);
    const auto edges = FindEdges(RandomOperations(random));
    const Matrix whole = Closure(ToMatrix(edges));
    for (size_t b = 0; b < edges.size(); ++b) {
      CHECK(std::is_sorted(edges[b].begin(), edges[b].end()));
      for (int a : edges[b]) {
        CHECK(a < static_cast<int>(b));
        for (int other : edges[b])
          CHECK_FALSE(whole[static_cast<size_t>(other)][static_cast<size_t>(a)]);
      }
    }
  }
}

TEST_CASE("readers of one write run in any order, and the next write waits for all of them") {
  const ByteRange r{0, 0, 64};
  const auto edges = FindEdges({{{}, {r}}, {{r}, {}}, {{r}, {}}, {{}, {r}}});
  CHECK(edges == std::vector<std::vector<int>>{{}, {0}, {0}, {1, 2}});
}

}  // namespace
}  // namespace mxtrain::executor
