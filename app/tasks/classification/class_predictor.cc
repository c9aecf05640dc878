// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_predictor.h"

#include <algorithm>

#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

class OneClass final : public ClassPrediction {
 public:
  OneClass(std::span<const float> scores, std::vector<ScoredClass> best, const ClassNames& names,
           int64_t listed)
      : ClassPrediction(scores, std::move(best), names), listed_(listed) {}

  std::vector<std::string> Cells() const override {
    std::vector<std::string> cells;
    for (const auto& [k, score] : best()) {
      cells.push_back(names()[k]);
      cells.push_back(format("{}", score));
    }
    for (int64_t k = 0; k < listed_ && !finite(); ++k) cells.insert(cells.end(), {"", "nan"});
    return cells;
  }
  std::string Caption() const override {
    return finite() ? format("{} {:.3f}", names()[best()[0].first], best()[0].second) : "nan";
  }
  std::vector<std::string> Folders(double least_score) const override {
    if (best().empty() || best()[0].second < least_score) return {};
    return {names()[best()[0].first]};
  }

 private:
  const int64_t listed_;
};

class ClassPredictor final : public Predictor {
 public:
  ClassPredictor(int64_t classes, std::vector<std::string> names, int top_k,
                 std::optional<double> threshold)
      : classes_(classes),
        listed_(std::min<int64_t>(top_k, classes)),
        names_(std::move(names)),
        threshold_(classes == 2 ? threshold : std::nullopt) {}

  Abilities abilities() const override {
    return {.top_k = true, .threshold = classes_ == 2, .sorts = true};
  }
  int64_t width() const override { return classes_; }
  std::vector<std::string> Columns() const override {
    std::vector<std::string> columns = {"predicted", "score"};
    for (int64_t k = 2; k <= listed_; ++k)
      columns.insert(columns.end(), {format("predicted_{}", k), format("score_{}", k)});
    return columns;
  }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& /*example*/) const override {
    return std::make_unique<OneClass>(values, Best(values), names_, listed_);
  }
  std::string HowNotFinite() const override {
    return "no class is predicted, and the score is shown as nan";
  }
  bool HasClass(const std::string& name) const override { return names_.Contains(name); }
  bool MayBeUnsure(double least_score) const override { return least_score > 0; }

 private:
  std::vector<ScoredClass> Best(std::span<const float> scores) const {
    if (!IsFinite(scores)) return {};
    if (!threshold_) return BestOf(scores, listed_);
    const int64_t k = double{scores[1]} >= *threshold_ ? 1 : 0;
    std::vector<ScoredClass> best = {{k, scores[static_cast<size_t>(k)]},
                                     {1 - k, scores[static_cast<size_t>(1 - k)]}};
    best.resize(static_cast<size_t>(listed_));
    return best;
  }

  const int64_t classes_, listed_;
  const ClassNames names_;
  const std::optional<double> threshold_;
};

}  // namespace

std::unique_ptr<Predictor> NewClassPredictor(int64_t classes, std::vector<std::string> names,
                                             int top_k, std::optional<double> threshold) {
  return std::make_unique<ClassPredictor>(classes, std::move(names), top_k, threshold);
}

}  // namespace mxtrain::tasks
