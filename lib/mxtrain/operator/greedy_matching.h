// SPDX-License-Identifier: Apache-2.0
#pragma once
// Greedy matching of the rows of a matrix of scores with its columns: the pair with the highest
// score is matched, then the highest of those whose row and column are both free, and so on, while
// scores are above a threshold. Of equal scores the lowest row comes first, then the lowest column.
//
// Rows are divided into groups, row i into group i % groups. Each column knows the best of its free
// rows in each group and in all. When a row is taken, the columns that had it look again in its
// group, and those of which it was the best among their groups: so even equal columns take hardly
// more than rows x columns scores. A team matches a matrix. What is kept of column i, or of group
// i and its rows, is written and read by member i % size alone; what all must know they tell each
// other by Fold.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/rows.h"

namespace mxtrain {

// Of several matrices, one after the other; for kernels.
template <typename C>
struct GreedyMatches {
  C* score;                // [matrices, columns]: of the column with its candidate
  int32_t* candidate;      // [matrices, columns]: the best free row; -1: none, or matched
  int32_t* row_of_column;  // [matrices, columns]: -1: not matched
  C* group_score;          // [matrices, columns, groups]: of the column with the best of a group
  int32_t* group_row;      // [matrices, columns, groups]: the best free row; -1: none
  int32_t* column_of_row;  // [matrices, rows]
  int64_t groups;

  // Groups of 16 rows, or larger ones where that would be many.
  static int64_t Groups(int64_t rows) {
    constexpr int64_t kRowsOfGroup = 16, kMostGroups = 1024;
    return std::clamp<int64_t>(CeilDivide(rows, kRowsOfGroup), 1, kMostGroups);
  }
  static int64_t Bytes(int64_t matrices, int64_t rows, int64_t columns) {
    constexpr auto kScored = static_cast<int64_t>(sizeof(C) + sizeof(int32_t));
    constexpr auto kRow = static_cast<int64_t>(sizeof(int32_t));
    return matrices * (columns * (kScored + kRow + Groups(rows) * kScored) + rows * kRow);
  }
  GreedyMatches(void* scratch, int64_t matrices, int64_t rows, int64_t columns)
      : score(static_cast<C*>(scratch)), groups(Groups(rows)) {
    group_score = score + matrices * columns;
    candidate = reinterpret_cast<int32_t*>(group_score + matrices * columns * groups);
    row_of_column = candidate + matrices * columns;
    group_row = row_of_column + matrices * columns;
    column_of_row = group_row + matrices * columns * groups;
  }
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
    for (int64_t group = team.rank(); group < to.groups; group += team.size()) {
      for (int64_t row = group; row < rows; row += to.groups)
        to.column_of_row[matrix * rows + row] = -1;
    }
    for (int64_t column = team.rank(); column < columns; column += team.size())
      to.row_of_column[matrix * columns + column] = -1;
    for (int64_t column = 0; column < count; ++column) {
      for (int64_t group = team.rank(); group < to.groups; group += team.size())
        LookInGroup(matrix, column, group);
      FindCandidate(team, matrix, column);
    }
    for (int64_t pairs = 0; pairs < most; ++pairs) {
      const Pair best = BestPair(team, matrix, count);
      if (best.row < 0) return;
      if (best.row % to.groups % team.size() == team.rank())
        to.column_of_row[matrix * rows + best.row] = best.column;
      if (best.column % team.size() == team.rank()) {
        to.row_of_column[matrix * columns + best.column] = best.row;
        to.candidate[matrix * columns + best.column] = -1;
      }
      ReplaceInGroups(team, matrix, count, best.row);
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

  // Columns of which `row` was the best of its group look for another there.
  template <typename Team>
  MXTRAIN_HD void ReplaceInGroups(const Team& team, int64_t matrix, int64_t count,
                                  int64_t row) const {
    const int64_t group = row % to.groups;
    if (group % team.size() != team.rank()) return;
    for (int64_t column = 0; column < count; ++column) {
      if (to.group_row[GroupAt(matrix, column, group)] == row) LookInGroup(matrix, column, group);
    }
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
      FindCandidate(team, matrix, column);
    }
  }

  MXTRAIN_HD int64_t GroupAt(int64_t matrix, int64_t column, int64_t group) const {
    return (matrix * columns + column) * to.groups + group;
  }

  MXTRAIN_HD void LookInGroup(int64_t matrix, int64_t column, int64_t group) const {
    C best = threshold;
    int64_t best_row = -1;
    for (int64_t row = group; row < rows; row += to.groups) {
      if (to.column_of_row[matrix * rows + row] >= 0) continue;
      const C score = scores(matrix, row, column);
      if (score > best) best = score, best_row = row;
    }
    const int64_t i = GroupAt(matrix, column, group);
    to.group_score[i] = best;
    to.group_row[i] = static_cast<int32_t>(best_row);
  }

  template <typename Team>
  MXTRAIN_HD void FindCandidate(const Team& team, int64_t matrix, int64_t column) const {
    Pair best{threshold, -1, static_cast<int32_t>(column)};
    for (int64_t group = team.rank(); group < to.groups; group += team.size()) {
      const int64_t i = GroupAt(matrix, column, group);
      best = detail::BetterPair{}(
          best, Pair{to.group_score[i], to.group_row[i], static_cast<int32_t>(column)});
    }
    best = team.Fold(best, detail::BetterPair{});
    if (column % team.size() != team.rank()) return;
    to.score[matrix * columns + column] = best.score;
    to.candidate[matrix * columns + column] = best.row;
  }
};

}  // namespace mxtrain
