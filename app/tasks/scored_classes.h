// SPDX-License-Identifier: Apache-2.0
#pragma once
// Predictions that are classes with scores: one of several, or any number of them.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/tasks/prediction.h"
#include "app/tasks/task.h"

namespace mxtrain::tasks {

// Names by index; unnamed classes are numbered.
class ClassNames {
 public:
  explicit ClassNames(std::vector<std::string> names) : names_(std::move(names)) {}
  std::string operator[](int64_t k) const;
  bool Contains(const std::string& name) const;

 private:
  std::vector<std::string> names_;
};

// "one score for each class, in this order: ..."; nothing without names.
std::optional<OutputMeaning> MeaningOfClasses(const std::vector<std::string>& names);

// Class and score.
using ScoredClass = std::pair<int64_t, float>;

// The `count` classes with the highest scores, best first; of equal scores the first class.
std::vector<ScoredClass> BestOf(std::span<const float> scores, int64_t count);

class ClassPrediction : public HeadPrediction {
 public:
  // `best`: the classes that are predicted, best first; none from scores that are not finite.
  ClassPrediction(std::span<const float> scores, std::vector<ScoredClass> best,
                  const ClassNames& names);

  std::span<const float> numbers() const override { return scores_; }
  std::string Text() const override;
  Json ToJson() const override;

 protected:
  const std::vector<ScoredClass>& best() const { return best_; }
  const ClassNames& names() const { return names_; }
  bool finite() const { return finite_; }
  // "cat 0.9312"
  std::string TextOf(const ScoredClass& scored) const;

 private:
  const std::span<const float> scores_;
  const bool finite_;
  const std::vector<ScoredClass> best_;
  const ClassNames& names_;
};

}  // namespace mxtrain::tasks
