// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_files.h"

#include <algorithm>
#include <filesystem>

#include "app/report/output.h"
#include "app/report/plot/chart.h"
#include "mxtrain/base/file.h"

namespace mxtrain::tasks {
namespace {

using report::QuoteCsv;

std::string ClassesCsv(const ClassReport& report) {
  std::string text = "class,precision,recall,f1,examples\n";
  std::vector<ClassReport::Row> rows = report.Rows();
  rows.insert(rows.end(), {report.MacroMean(), report.WeightedMean()});
  for (const ClassReport::Row& r : rows)
    text += format("{},{},{},{},{}\n", QuoteCsv(r.name), r.precision, r.recall, r.f1, r.examples);
  return text;
}

std::string ConfusionCsv(const ClassReport& report) {
  const ConfusionCounts& counts = report.counts();
  const int64_t classes = counts.classes();
  if (classes > kMostClassesInMatrix) {
    std::string pairs = "true,predicted,examples\n";
    for (int64_t k = 0; k < classes; ++k) {
      for (const auto& [guess, n] : counts.RowOf(k))
        pairs += format("{},{},{}\n", QuoteCsv(report.Name(k)), QuoteCsv(report.Name(guess)), n);
    }
    return pairs;
  }
  std::string text = "true";
  for (int64_t k = 0; k < classes; ++k) text += "," + QuoteCsv(report.Name(k));
  for (int64_t k = 0; k < classes; ++k) {
    text += "\n" + QuoteCsv(report.Name(k));
    for (int64_t guess = 0; guess < classes; ++guess) text += format(",{}", counts.At(k, guess));
  }
  return text + "\n";
}

std::string CalibrationCsv(const ClassReport& report) {
  std::string text = "low,high,confidence,accuracy,examples\n";
  for (const CalibrationBin& b : CalibrationBins(report.verdicts())) {
    text += format("{},{},{},{},{}\n", b.low, b.high, CsvCell(b.confidence), CsvCell(b.accuracy),
                   b.examples);
  }
  return text;
}

std::string ThresholdsCsv(const ClassReport& report) {
  std::string text = "confidence,kept,accuracy\n";
  for (const ConfidenceThreshold& t : ConfidenceThresholds(report.verdicts())) {
    text += format("{},{},{}\n", t.threshold, t.kept, CsvCell(t.accuracy));
  }
  return text;
}

std::string DecisionsCsv(const ClassReport& report) {
  std::string text = "threshold,precision,recall,f1\n";
  for (const DecisionThreshold& t : DecisionThresholds(report.scored())) {
    text += format("{},{},{},{}\n", t.threshold, CsvCell(t.precision), t.recall, t.f1);
  }
  return text;
}

std::string MistakesCsv(const ClassReport& report) {
  const bool texts = std::ranges::any_of(
      report.mistakes(), [](const ClassReport::Mistake& m) { return !m.text.empty(); });
  std::string text = format("file,true,predicted,score,label_doubtful{}\n", texts ? ",text" : "");
  for (const ClassReport::Mistake& m : report.mistakes()) {
    text += format("{},{},{},{},{}{}\n", QuoteCsv(m.example), QuoteCsv(report.Name(m.truth)),
                   QuoteCsv(report.Name(m.guess)), m.score, report.LabelIsDoubtful(m) ? 1 : 0,
                   texts ? "," + QuoteCsv(report::ValidUtf8(m.text)) : "");
  }
  return text;
}

// The worst mistakes whose images were kept; may be empty.
std::vector<report::SheetImage> MistakeImages(const ClassReport& report) {
  std::vector<report::SheetImage> images;
  for (const ClassReport::Mistake& m : report.mistakes()) {
    if (m.image.pixels.empty()) break;
    images.push_back({m.image,
                      {format("true: {}", report.Name(m.truth)),
                       format("{}: {:.3f}", report.Name(m.guess), m.score),
                       std::filesystem::path(m.example).filename().string()}});
    if (report.LabelIsDoubtful(m)) images.back().lines.push_back("label doubtful");
  }
  return images;
}

std::string SummaryLine(const ClassReport& report) {
  const Interval95 interval = report.AccuracyInterval();
  return format("{} examples, accuracy {:.4f} ({:.3f} to {:.3f})", report.verdicts().size(),
                report.Accuracy(), interval.low, interval.high);
}

}  // namespace

plot::Drawing DrawConfusion(const ClassReport& report) {
  plot::HeatMap map;
  map.title = "confusion matrix";
  map.subtitle = SummaryLine(report);
  map.row_label = "true class";
  map.column_label = "predicted class";
  map.value_label = "fraction of the true class";
  const ConfusionCounts& counts = report.counts();
  for (int64_t k = 0; k < counts.classes(); ++k) {
    const auto examples = static_cast<double>(counts.OfTruth(k));
    map.names.push_back(report.Name(k));
    std::vector<double>& shades = map.shades.emplace_back();
    std::vector<std::string>& texts = map.texts.emplace_back();
    for (int64_t guess = 0; guess < counts.classes(); ++guess) {
      const int64_t n = counts.At(k, guess);
      shades.push_back(examples > 0 ? static_cast<double>(n) / examples : 0);
      texts.push_back(n > 0 ? std::to_string(n) : "");
    }
  }
  return plot::Draw(map);
}

plot::Drawing DrawClasses(const ClassReport& report) {
  constexpr size_t kMost = 40;
  std::vector<ClassReport::Row> rows = report.Rows();
  plot::BarChart chart;
  chart.title = "precision, recall and F1 of each class";
  chart.subtitle = SummaryLine(report);
  if (rows.size() > kMost) {
    std::stable_sort(rows.begin(), rows.end(),
                     [](const auto& a, const auto& b) { return a.f1 < b.f1; });
    chart.title = format("precision, recall and F1 of the {} classes with the lowest F1, of {}",
                         kMost, rows.size());
    rows.resize(kMost);
  }
  chart.values = {.label = "precision, recall, F1", .low = 0, .high = 1};
  chart.series = {{"precision", {}}, {"recall", {}}, {"F1", {}}};
  for (const ClassReport::Row& row : rows) {
    chart.names.push_back(format("{} ({})", row.name, row.examples));
    chart.series[0].values.push_back(row.precision);
    chart.series[1].values.push_back(row.recall);
    chart.series[2].values.push_back(row.f1);
  }
  return plot::Draw(chart, 560);
}

plot::Drawing DrawReliability(const ClassReport& report) {
  constexpr int64_t kFew = 10;  // of which an accuracy says little
  const std::vector<CalibrationBin> bins = CalibrationBins(report.verdicts());
  const auto total = static_cast<double>(report.verdicts().size());
  plot::Chart::Series accuracy{.name = "accuracy of the bin",
                               .kind = plot::Chart::Series::Kind::kColumns,
                               .colour = plot::kSky};
  plot::Chart::Series few{.name = format("of fewer than {} examples", kFew),
                          .kind = plot::Chart::Series::Kind::kColumns,
                          .colour = plot::kGray};
  plot::Chart::Series confidence{.name = "accuracy at the bin's mean confidence",
                                 .kind = plot::Chart::Series::Kind::kPoints,
                                 .colour = plot::kVermilion};
  plot::Chart::Series share{
      .name = "", .kind = plot::Chart::Series::Kind::kColumns, .colour = plot::kGray};
  for (const CalibrationBin& bin : bins) {
    accuracy.width = few.width = share.width = bin.high - bin.low;
    const double middle = (bin.low + bin.high) / 2;
    if (bin.examples > 0)
      (bin.examples < kFew ? few : accuracy).points.push_back({middle, bin.accuracy});
    if (bin.examples > 0) confidence.points.push_back({bin.confidence, bin.accuracy});
    share.points.push_back({middle, static_cast<double>(bin.examples) / total});
  }
  plot::Chart chart;
  chart.title = "reliability";
  chart.subtitle = format("{}, expected calibration error {:.4f}", SummaryLine(report),
                          ExpectedCalibrationError(bins));
  chart.x = {.label = "confidence: probability of the predicted class", .low = 0, .high = 1};
  chart.y = {.label = "accuracy", .low = 0, .high = 1};
  plot::Chart::Series ideal{.name = "perfect calibration",
                            .points = {{0, 0}, {1, 1}},
                            .colour = plot::kBlack,
                            .dashed = true};
  chart.series = {accuracy};
  if (!few.points.empty()) chart.series.push_back(few);
  chart.series.insert(chart.series.end(), {ideal, confidence});
  plot::Chart histogram;
  histogram.x = chart.x;
  histogram.y = {.label = "share of examples", .low = 0, .high = 1};
  histogram.series = {share};
  return plot::Stack(plot::Draw(chart, 560, 520), plot::Draw(histogram, 560, 210));
}

void WriteClassFiles(const ClassReport& report, const std::string& folder) {
  MakeFolders(folder);
  const auto file = [&folder](const char* name) { return folder + "/" + name; };
  WriteFileAtomically(file("classes.csv"), ClassesCsv(report));
  WriteFileAtomically(file("confusion.csv"), ConfusionCsv(report));
  WriteFileAtomically(file("calibration.csv"), CalibrationCsv(report));
  WriteFileAtomically(file("thresholds.csv"), ThresholdsCsv(report));
  if (!report.scored().empty()) WriteFileAtomically(file("decisions.csv"), DecisionsCsv(report));
  WriteFileAtomically(file("mistakes.csv"), MistakesCsv(report));
  if (report.counts().classes() <= kMostClassesInMatrix)
    plot::Save(DrawConfusion(report), file("confusion"));
  plot::Save(DrawClasses(report), file("classes"));
  plot::Save(DrawReliability(report), file("reliability"));
  const std::vector<report::SheetImage> images = MistakeImages(report);
  if (!images.empty())
    plot::SaveAs(report::DrawSheet(
                     "the worst mistakes, with the probability of the predicted class", images),
                 file("mistakes.png"));
}

}  // namespace mxtrain::tasks
