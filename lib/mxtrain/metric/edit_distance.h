// SPDX-License-Identifier: Apache-2.0
#pragma once
// The edit distance of Levenshtein (1966): the least number of elements that are inserted, deleted
// or replaced to make one sequence of another.
#include <algorithm>
#include <cstdint>
#include <vector>

namespace mxtrain {

// One step of a shortest way from `truth` to `said`.
struct Edit {
  enum Kind { kSame, kReplaced, kLeftOut, kPutIn } kind = kSame;
  int64_t truth = 0, said = 0;  // the elements; of kPutIn and kLeftOut where the other one stands
};

// The steps, in order. Of ways of equal length the one that replaces rather than leaves out, and
// leaves out rather than puts in, seen from the end. Takes time and memory of the product of the
// lengths.
template <typename Sequence>
std::vector<Edit> ShortestEdits(const Sequence& truth, const Sequence& said) {
  const size_t rows = truth.size() + 1, columns = said.size() + 1;
  std::vector<int64_t> cost(rows * columns);
  const auto at = [&](size_t i, size_t j) -> int64_t& { return cost[i * columns + j]; };
  for (size_t i = 0; i < rows; ++i) {
    for (size_t j = 0; j < columns; ++j) {
      if (i == 0 || j == 0) {
        at(i, j) = static_cast<int64_t>(i + j);
        continue;
      }
      const int64_t replaced = at(i - 1, j - 1) + (truth[i - 1] == said[j - 1] ? 0 : 1);
      at(i, j) = std::min({replaced, at(i - 1, j) + 1, at(i, j - 1) + 1});
    }
  }
  std::vector<Edit> edits;
  for (size_t i = truth.size(), j = said.size(); i > 0 || j > 0;) {
    const bool same = i > 0 && j > 0 && truth[i - 1] == said[j - 1];
    if (i > 0 && j > 0 && at(i, j) == at(i - 1, j - 1) + (same ? 0 : 1)) {
      --i, --j;
      edits.push_back(
          {same ? Edit::kSame : Edit::kReplaced, static_cast<int64_t>(i), static_cast<int64_t>(j)});
    } else if (i > 0 && at(i, j) == at(i - 1, j) + 1) {
      --i;
      edits.push_back({Edit::kLeftOut, static_cast<int64_t>(i), static_cast<int64_t>(j)});
    } else {
      --j;
      edits.push_back({Edit::kPutIn, static_cast<int64_t>(i), static_cast<int64_t>(j)});
    }
  }
  std::reverse(edits.begin(), edits.end());
  return edits;
}

// How many there are, without the steps: in the memory of one of the sequences.
template <typename Sequence>
int64_t EditDistance(const Sequence& truth, const Sequence& said) {
  std::vector<int64_t> cost(said.size() + 1);
  for (size_t j = 0; j < cost.size(); ++j) cost[j] = static_cast<int64_t>(j);
  for (size_t i = 0; i < truth.size(); ++i) {
    int64_t diagonal = cost[0];
    cost[0] = static_cast<int64_t>(i) + 1;
    for (size_t j = 0; j < said.size(); ++j) {
      const int64_t replaced = diagonal + (truth[i] == said[j] ? 0 : 1);
      diagonal = cost[j + 1];
      cost[j + 1] = std::min({replaced, cost[j + 1] + 1, cost[j] + 1});
    }
  }
  return cost.back();
}

}  // namespace mxtrain
