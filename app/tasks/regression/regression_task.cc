// SPDX-License-Identifier: Apache-2.0
// Numbers for each example: regression.
#include <algorithm>
#include <cmath>

#include "app/report/list_item.h"
#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "app/tasks/image_table_recipe.h"
#include "app/tasks/output_report.h"
#include "app/tasks/regression/value_predictor.h"
#include "app/tasks/table_recipe.h"
#include "app/tasks/task_list.h"
#include "mxtrain/base/file.h"
#include "mxtrain/base/format.h"

namespace mxtrain::tasks {
namespace {

// Of a value: predicted over true, and what is left.
plot::Drawing DrawPredictions(const std::string& name, const std::vector<plot::Point>& pairs,
                              double rmse, double r2) {
  plot::Chart::Series each{.name = "examples",
                           .points = pairs,
                           .kind = plot::Chart::Series::Kind::kPoints,
                           .colour = plot::kBlue};
  double least = pairs[0].x, most = pairs[0].x;
  plot::Chart::Series residuals = each;
  residuals.points.clear();
  for (const plot::Point& pair : pairs) {
    least = std::min(least, pair.x), most = std::max(most, pair.x);
    residuals.points.push_back({pair.y, pair.y - pair.x});
  }
  plot::Chart chart;
  chart.title = format("{}: predicted over true", name);
  chart.subtitle = format("{}, rmse {}, r2 {:.4f}", Counted(pairs.size(), "example"),
                          report::FormatNumber(rmse), r2);
  chart.x = {.label = "true"};
  chart.y = {.label = "predicted"};
  chart.series = {each,
                  {.name = "exact",
                   .points = {{least, least}, {most, most}},
                   .colour = plot::kBlack,
                   .dashed = true}};
  plot::Chart rest;
  rest.x = {.label = "predicted"};
  rest.y = {.label = "predicted - true"};
  residuals.name = "";
  rest.series = {residuals};
  return plot::Stack(plot::Draw(chart, 560, 480), plot::Draw(rest, 560, 300));
}

class RegressionReport final : public OutputReport {
 public:
  using OutputReport::OutputReport;

  // Figures of the first numbers of an example.
  void WriteFiles(const std::string& folder) const override {
    constexpr size_t kMostFigures = 8;
    MakeFolders(folder);
    for (size_t k = 0; k < std::min(pairs_.size(), kMostFigures); ++k) {
      if (pairs_[k].empty()) continue;
      plot::Save(DrawPredictions(Name(k), pairs_[k], std::sqrt(sums_[k].squared / sums_[k].count),
                                 sums_[k].R2()),
                 format("{}/predictions{}", folder, k == 0 ? "" : format("_{}", k + 1)));
    }
  }

 private:
  static constexpr size_t kMostPairs =
      20'000;  // of more examples every second, fourth, ... is drawn

  // Sums over the examples.
  struct Sums {
    double count = 0, absolute = 0, squared = 0, truth = 0, truth_squared = 0;
    // 1 - squared error / variance; 0 if all true values are equal.
    double R2() const {
      const double variance = truth_squared - truth * truth / count;
      return variance > 0 ? 1 - squared / variance : 0;
    }
  };

  void AddNumber(size_t k, double truth, double prediction) override {
    if (k >= sums_.size()) sums_.resize(k + 1);
    const double error = prediction - truth;
    sums_[k].count += 1;
    sums_[k].absolute += std::abs(error);
    sums_[k].squared += error * error;
    sums_[k].truth += truth;
    sums_[k].truth_squared += truth * truth;
    AddPair(k, {truth, prediction});
  }
  void AddPair(size_t k, const plot::Point& pair) {
    if (!std::isfinite(pair.x) || !std::isfinite(pair.y)) return;
    if (k >= pairs_.size()) pairs_.resize(k + 1), strides_.resize(k + 1, 1);
    std::vector<plot::Point>& pairs = pairs_[k];
    if (static_cast<int64_t>(sums_[k].count - 1) % strides_[k] != 0) return;
    if (pairs.size() == kMostPairs) {
      for (size_t i = 0; i < kMostPairs / 2; ++i) pairs[i] = pairs[2 * i];
      pairs.resize(kMostPairs / 2);
      strides_[k] *= 2;
    }
    pairs.push_back(pair);
  }
  std::vector<std::pair<const char*, double>> Measures(size_t k) const override {
    const Sums& s = sums_[k];
    return {
        {"mae", s.absolute / s.count}, {"rmse", std::sqrt(s.squared / s.count)}, {"r2", s.R2()}};
  }

  std::vector<Sums> sums_;
  std::vector<std::vector<plot::Point>> pairs_;  // true and predicted, of each number
  std::vector<int64_t> strides_;
};

class RegressionTask final : public Task {
 public:
  using Task::Task;

  MetricSpec DefaultMetric() const override {
    const bool absolute = head().loss && head().loss->kind == LossReport::Head::Kind::kAbsolute;
    return {absolute ? "mae" : "rmse", {}, "", ""};
  }
  bool TakesNumbers() const override { return head().has_loss_of_label(); }
  std::optional<Finding> RefuseSets() const override {
    return Finding{LogLevel::kError,
                   format("label_delim makes the label '{}' a set of classes, but the loss '{}' "
                          "takes numbers",
                          head().label, head().name),
                   "remove label_delim, or end the net with LogisticRegressionOutput"};
  }
  void Show(std::span<const float> label, const TShape& /*shape*/,
            report::SheetImage* shown) const override {
    constexpr size_t kMost = 3;
    for (size_t k = 0; k < std::min(kMost, label.size()); ++k) {
      const bool named = head().facts.columns.size() == label.size();
      shown->lines.push_back((named ? head().facts.columns[k] + " " : "") +
                             format("{:.4g}", label[k]));
    }
    if (label.size() > kMost) shown->lines.emplace_back("...");
  }
  std::optional<OutputMeaning> MeaningOfOutput() const override {
    const LabelFacts& facts = head().facts;
    if (!facts.units) return std::nullopt;
    return OutputMeaning{"units", format("'{}' is standardized; {} is {} with {}", head().name,
                                         report::ColumnsText(facts.columns),
                                         facts.units->transforms.empty()
                                             ? "mean + std * output"
                                             : "mean + std * output, its transform undone,",
                                         report::UnitsText(*facts.units))};
  }
  std::unique_ptr<Report> NewReport() const override {
    return std::make_unique<RegressionReport>(head(), head().facts.columns);
  }
  std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& /*options*/) const override {
    if (!head().is_list() || head().width() > kMostValues) return nullptr;
    return NewValuePredictor(head().width(), head().facts.columns, head().facts.units);
  }
};

}  // namespace

MXTRAIN_TASK(regression_task, tasks) {
  TaskKind kind;
  kind.name = "regression";
  kind.help = "numbers for each example";
  kind.open = [](const Head& head) -> std::unique_ptr<Task> {
    using Kind = LossReport::Head::Kind;
    const bool numbers =
        head.loss && (head.loss->kind == Kind::kLinear || head.loss->kind == Kind::kAbsolute);
    const bool letters = head.op == "ctc_greedy_decoder";  // of the task text_lines
    const bool fits = head.has_loss_of_label()
                          ? numbers && !head.gives_image()
                          : !head.is_value_of_loss() && !head.gives_classes() && !letters;
    return fits ? std::make_unique<RegressionTask>(head) : nullptr;
  };
  kind.recognize = [](const RecipeRequest& request) {
    if (auto images = RecognizeImageTable(request, ImageTarget::kNumbers)) return images;
    return RecognizeTable(request, TableTarget::kNumbers);
  };
  kind.recognizes_files = true;
  kind.recognizes_any = true;  // tables of texts and of boxes hold numbers, too
  tasks.Add(std::move(kind));
}

}  // namespace mxtrain::tasks
