// SPDX-License-Identifier: Apache-2.0
#pragma once
// Greedy matching of the rows of a matrix of scores with its columns: the pair with the highest
// score is matched, then the highest of those whose row and column are both free, and so on, while
// scores are above a threshold. Of equal scores the lowest row comes first, then the lowest column.
//
// Each column knows the best of its free rows, and looks again only when that row is taken by
// another column: as a rule few do, so that all takes about rows x columns scores. A team matches a
// matrix. What is kept of row or column i is written and read by member i % size alone; what all
// must know they tell each other by Fold.
#include <limits>

#include "mxtrain/operator/rows.h"

namespace mxtrain {

// Of several matrices, one after the other; for kernels.
template <typename C>
struct GreedyMatches {
  C* score;                // [matrices, columns]: of the column with its candidate
  int32_t* candidate;      // [matrices, columns]: the best free row; -1: none, or matched
  int32_t* row_of_column;  // [matrices, columns]: -1: not matched
  int32_t* column_of_row;  // [matrices, rows]

  static int64_t Bytes(int64_t matrices, int64_t rows, int64_t columns) {
    constexpr auto kOfColumn = static_cast<int64_t>(sizeof(C) + 2 * sizeof(int32_t));
    return matrices * (columns * kOfColumn + rows * static_cast<int64_t>(sizeof(int32_t)));
  }
  GreedyMatches(void* scratch, int64_t matrices, int64_t columns)
      : score(static_cast<C*>(scratch)),
        candidate(reinterpret_cast<int32_t*>(score + matrices * columns)),
        row_of_column(candidate + matrices * columns),
        column_of_row(row_of_column + matrices * columns) {}
};

namespace detail {

template <typename C>
struct ScoredPair {
  C score;
  int32_t row, column;  // -1: no pair
};
struct BetterPair {
  template <typename C>
  MXTRAIN_HD ScoredPair<C> operator()(const ScoredPair<C>& a, const ScoredPair<C>& b) const {
    if (b.row < 0) return a;
    if (a.row < 0) return b;
    if (a.score != b.score) return a.score > b.score ? a : b;
    if (a.row != b.row) return a.row < b.row ? a : b;
    return a.column < b.column ? a : b;
  }
};
struct SmallerOf {
  MXTRAIN_HD int64_t operator()(int64_t a, int64_t b) const { return b < a ? b : a; }
};

}  // namespace detail

// The body of ForRows over matrices. Scores has
//   C operator()(int64_t matrix, int64_t row, int64_t column) const;
//   int64_t Columns(int64_t matrix) const;   // those from there on are not matched
template <typename C, typename Scores>
struct MatchGreedily {
  Scores scores;
  int64_t rows, columns;
  C threshold;
  int64_t most;  // pairs of a matrix
  GreedyMatches<C> to;

  using Pair = detail::ScoredPair<C>;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t matrix) const {
    const int64_t count = scores.Columns(matrix);
    for (int64_t row = team.rank(); row < rows; row += team.size())
      to.column_of_row[matrix * rows + row] = -1;
    for (int64_t column = team.rank(); column < columns; column += team.size())
      to.row_of_column[matrix * columns + column] = -1;
    for (int64_t column = 0; column < count; ++column)
      FindCandidate(team, matrix, column, std::numeric_limits<C>::infinity());
    for (int64_t pairs = 0; pairs < most; ++pairs) {
      const Pair best = BestPair(team, matrix, count);
      if (best.row < 0) return;
      if (best.row % team.size() == team.rank())
        to.column_of_row[matrix * rows + best.row] = best.column;
      if (best.column % team.size() == team.rank()) {
        to.row_of_column[matrix * columns + best.column] = best.row;
        to.candidate[matrix * columns + best.column] = -1;
      }
      ReplaceCandidate(team, matrix, count, best.row);
    }
  }

  template <typename Team>
  MXTRAIN_HD Pair BestPair(const Team& team, int64_t matrix, int64_t count) const {
    Pair best{C(0), -1, -1};
    for (int64_t column = team.rank(); column < count; column += team.size()) {
      const int64_t i = matrix * columns + column;
      const Pair own{to.score[i], to.candidate[i], static_cast<int32_t>(column)};
      best = detail::BetterPair{}(best, own);
    }
    return team.Fold(best, detail::BetterPair{});
  }

  // Columns whose candidate `row` was take another one.
  template <typename Team>
  MXTRAIN_HD void ReplaceCandidate(const Team& team, int64_t matrix, int64_t count,
                                   int64_t row) const {
    int64_t next = team.rank();
    while (true) {
      while (next < count && to.candidate[matrix * columns + next] != row) next += team.size();
      const int64_t column = team.Fold(next, detail::SmallerOf{});
      if (column >= count) return;
      const bool own = column % team.size() == team.rank();
      const C ceiling =
          team.Fold(own ? to.score[matrix * columns + column] : threshold, LargerOf{});
      FindCandidate(team, matrix, column, ceiling);
    }
  }

  // No free row has a higher score than `ceiling`: the first that has it will do.
  template <typename Team>
  MXTRAIN_HD void FindCandidate(const Team& team, int64_t matrix, int64_t column, C ceiling) const {
    Pair best{threshold, -1, static_cast<int32_t>(column)};
    for (int64_t row = team.rank(); row < rows; row += team.size()) {
      if (to.column_of_row[matrix * rows + row] >= 0) continue;
      const C score = scores(matrix, row, column);
      if (!(score > best.score)) continue;
      best.score = score;
      best.row = static_cast<int32_t>(row);
      if (score >= ceiling) break;
    }
    best = team.Fold(best, detail::BetterPair{});
    if (column % team.size() != team.rank()) return;
    to.score[matrix * columns + column] = best.score;
    to.candidate[matrix * columns + column] = best.row;
  }
};

}  // namespace mxtrain
