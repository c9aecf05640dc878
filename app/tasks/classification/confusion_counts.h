// SPDX-License-Identifier: Apache-2.0
#pragma once
// How often each class was predicted for the examples of each true class.
#include <cstdint>
#include <map>
#include <vector>

namespace mxtrain::tasks {

// Memory grows with the pairs of classes that occur, not with all of them.
class ConfusionCounts {
 public:
  explicit ConfusionCounts(int64_t classes = 0)
      : rows_(static_cast<size_t>(classes)), guesses_(static_cast<size_t>(classes)) {}

  int64_t classes() const { return static_cast<int64_t>(rows_.size()); }
  void Add(int64_t truth, int64_t guess) {
    Row& row = rows_[static_cast<size_t>(truth)];
    ++row.guesses[guess];
    ++row.sum;
    ++guesses_[static_cast<size_t>(guess)];
  }
  int64_t At(int64_t truth, int64_t guess) const {
    const std::map<int64_t, int64_t>& row = RowOf(truth);
    const auto found = row.find(guess);
    return found == row.end() ? 0 : found->second;
  }
  // By predicted class, without zeros.
  const std::map<int64_t, int64_t>& RowOf(int64_t truth) const {
    return rows_[static_cast<size_t>(truth)].guesses;
  }
  int64_t OfTruth(int64_t k) const { return rows_[static_cast<size_t>(k)].sum; }
  int64_t OfGuess(int64_t k) const { return guesses_[static_cast<size_t>(k)]; }

 private:
  struct Row {
    std::map<int64_t, int64_t> guesses;
    int64_t sum = 0;
  };
  std::vector<Row> rows_;
  std::vector<int64_t> guesses_;
};

// With more classes than these, a matrix is written as the pairs that occur, and not drawn.
inline constexpr int64_t kMostClassesInMatrix = 1000;

}  // namespace mxtrain::tasks
