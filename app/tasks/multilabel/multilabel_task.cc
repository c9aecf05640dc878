// SPDX-License-Identifier: Apache-2.0
// Any number of classes for each example: multi-label classification.
#include <algorithm>
#include <cmath>
#include <functional>

#include "app/tasks/image_table_recipe.h"
#include "app/tasks/output_report.h"
#include "app/tasks/regression/value_predictor.h"
#include "app/tasks/scored_classes.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

constexpr float kUsualThreshold = 0.5F;

// Those of the data; without names, the columns of a table that say 0 or 1.
std::vector<std::string> NamesOf(const Head& head) {
  return head.facts.all_classes.empty() ? head.facts.columns : head.facts.all_classes;
}

// With the highest F1: halfway between two scores; the usual one for a class that is never there.
double BestThreshold(std::vector<std::pair<double, bool>> scores) {
  std::ranges::sort(scores, std::greater<>());
  const auto there = static_cast<double>(
      std::ranges::count_if(scores, [](const auto& score) { return score.second; }));
  double best = double{kUsualThreshold}, best_f1 = 0, hits = 0;
  for (size_t i = 0; i < scores.size() && there > 0; ++i) {
    hits += scores[i].second ? 1 : 0;
    const bool last = i + 1 == scores.size();
    if (!last && scores[i + 1].first == scores[i].first) continue;
    const double f1 = 2 * hits / (static_cast<double>(i + 1) + there);
    if (f1 <= best_f1) continue;
    best_f1 = f1;
    best = last ? scores[i].first : (scores[i].first + scores[i + 1].first) / 2;
  }
  return best;
}

class MultilabelReport final : public OutputReport {
 public:
  using OutputReport::OutputReport;

  bool KeepScores() override { return keeps_scores_ = true; }
  std::vector<double> Thresholds() const override {
    std::vector<double> thresholds;
    for (const std::vector<std::pair<double, bool>>& of_class : scores_)
      thresholds.push_back(BestThreshold(of_class));
    return thresholds;
  }
  void UseThresholds(const std::vector<double>& thresholds) override {
    thresholds_ = thresholds;
    counts_.assign(scores_.size(), {});
    for (size_t k = 0; k < scores_.size(); ++k) {
      for (const auto& [score, there] : scores_[k]) CountOne(k, there, score);
    }
  }

 private:
  // Of a class, which is predicted from its threshold on.
  struct Counts {
    int64_t hits = 0, false_alarms = 0, misses = 0;
  };

  void AddNumber(size_t k, double truth, double prediction) override {
    const bool there = truth >= kUsualThreshold;
    if (keeps_scores_) {
      scores_.resize(std::max(scores_.size(), k + 1));
      if (std::isfinite(prediction)) scores_[k].emplace_back(prediction, there);
    }
    CountOne(k, there, prediction);
  }
  void CountOne(size_t k, bool there, double score) {
    if (k >= counts_.size()) counts_.resize(k + 1);
    const bool found = score >= (k < thresholds_.size() ? thresholds_[k] : double{kUsualThreshold});
    counts_[k].hits += there && found;
    counts_[k].false_alarms += !there && found;
    counts_[k].misses += there && !found;
  }
  std::vector<std::pair<const char*, double>> Measures(size_t k) const override {
    const auto part = [](int64_t of, int64_t all) {
      return all > 0 ? static_cast<double>(of) / static_cast<double>(all) : 0;
    };
    const Counts& c = counts_[k];
    return {{"precision", part(c.hits, c.hits + c.false_alarms)},
            {"recall", part(c.hits, c.hits + c.misses)},
            {"f1", part(2 * c.hits, 2 * c.hits + c.false_alarms + c.misses)}};
  }

  std::vector<Counts> counts_;
  std::vector<double> thresholds_;  // empty: the usual one
  bool keeps_scores_ = false;
  std::vector<std::vector<std::pair<double, bool>>> scores_;  // by class, with whether it is there
};

// CSV: predicted and score, several separated by semicolons.
class ClassSet final : public ClassPrediction {
 public:
  using ClassPrediction::ClassPrediction;

  std::vector<std::string> Cells() const override {
    if (!finite()) return {"", "nan"};
    std::vector<std::string> classes, scores;
    for (const auto& [k, score] : best()) {
      classes.push_back(names()[k]);
      scores.push_back(format("{}", score));
    }
    return {format("{}", join(classes, ";")), format("{}", join(scores, ";"))};
  }
  std::string Caption() const override {
    if (!finite()) return "nan";
    std::string text;
    for (const ScoredClass& scored : best())
      text += (text.empty() ? "" : ", ") + ClassPrediction::TextOf(scored);
    return text;
  }
  std::vector<std::string> Folders(double least_score) const override {
    std::vector<std::string> folders;
    for (const auto& [k, score] : best()) {
      if (score >= least_score) folders.push_back(names()[k]);
    }
    return folders;
  }
};

class MultilabelPredictor final : public Predictor {
 public:
  // `thresholds`: one for each class.
  MultilabelPredictor(std::vector<std::string> names, std::vector<double> thresholds)
      : classes_(std::ssize(thresholds)),
        names_(std::move(names)),
        thresholds_(std::move(thresholds)) {}

  Abilities abilities() const override { return {.threshold = true, .sorts = true}; }
  int64_t width() const override { return classes_; }
  std::vector<std::string> Columns() const override { return {"predicted", "score"}; }
  std::unique_ptr<HeadPrediction> Predict(std::span<const float> values,
                                          const Example& /*example*/) const override {
    std::vector<ScoredClass> best =
        IsFinite(values) ? BestOf(values, classes_) : std::vector<ScoredClass>();
    std::erase_if(best, [this](const ScoredClass& scored) {
      return double{scored.second} < thresholds_[static_cast<size_t>(scored.first)];
    });
    return std::make_unique<ClassSet>(values, std::move(best), names_);
  }
  std::string HowNotFinite() const override {
    return "no class is predicted, and the score is shown as nan";
  }
  bool HasClass(const std::string& name) const override { return names_.Contains(name); }
  bool MayBeUnsure(double /*least_score*/) const override { return true; }

 private:
  const int64_t classes_;
  const ClassNames names_;
  const std::vector<double> thresholds_;
};

class MultilabelTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override { return {"multilabel_accuracy", {}, "", ""}; }
  std::optional<Finding> RefuseSets() const override { return std::nullopt; }
  void Show(std::span<const float> label, const TShape& /*shape*/,
            report::SheetImage* shown) const override {
    constexpr int64_t kMostShown = 4;
    const ClassNames names(NamesOf(head()));
    for (int64_t k = 0, said = 0; k < static_cast<int64_t>(label.size()); ++k) {
      if (label[static_cast<size_t>(k)] < kUsualThreshold) continue;
      shown->lines.push_back(said == kMostShown ? "..." : names[k]);
      if (said++ == kMostShown) break;
    }
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    return MeaningOfClasses(NamesOf(head()));
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<MultilabelReport>(head(), NamesOf(head()));
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& options) const override {
    if (!head().is_list() || head().width() > kMostValues) return nullptr;
    if (head().width() == 1) return NewValuePredictor(1, head().facts.columns, {});  // yes or no
    std::vector<double> thresholds(static_cast<size_t>(head().width()),
                                   options.threshold.value_or(double{kUsualThreshold}));
    const auto own = options.thresholds.find(head().name);
    if (!options.threshold && own != options.thresholds.end() &&
        own->second.size() == thresholds.size())
      thresholds = own->second;
    return std::make_unique<MultilabelPredictor>(NamesOf(head()), std::move(thresholds));
  }
};

}  // namespace

MXTRAIN_TASK(multilabel_task, tasks) {
  TaskKind kind;
  kind.name = "multilabel";
  kind.help = "any number of classes for each example";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    const bool fits = head.loss && head.loss->kind == LossReport::Head::Kind::kLogistic;
    return fits ? std::make_unique<MultilabelTask>(head) : nullptr;
  };
  kind.recognize = [](const RecipeRequest& request) {
    return RecognizeImageTable(request, ImageTarget::kSets);
  };
  kind.recognizes_files = true;
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
