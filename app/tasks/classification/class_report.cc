// SPDX-License-Identifier: Apache-2.0
#include "app/tasks/classification/class_report.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "app/report/output.h"
#include "app/report/text_width.h"
#include "app/tasks/classification/class_files.h"
#include "app/tasks/prediction.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/text.h"

namespace mxtrain::tasks {

using report::Printable;
using report::QuoteCsv;

namespace {

std::string TextOf(const Example& example) {
  return example.source() ? example.source()->TextOf(example.index()) : "";
}

}  // namespace

void ClassReport::WriteEach(const LineOutput& lines) {
  lines_ = lines;
  if (lines.begins && lines.format == report::EachFormat::kCsv)
    lines.file->Write(format("{}file,true,predicted,score\n", lines.with_head ? "head," : ""));
}

void ClassReport::Add(const Examples& examples, const std::vector<NDArray>& outputs) {
  if (outputs[static_cast<size_t>(head().output)].shape().ndim() != 2) return;
  const auto compared = Compare(head(), examples, outputs);
  if (!compared || compared->label_shape.Size() != compared->outputs_shape[0]) return;
  const int64_t classes = compared->outputs_shape[1];
  if (empty()) {
    counts_ = ConfusionCounts(classes);
    own_confidence_.resize(static_cast<size_t>(classes));
  }
  const std::vector<float>&p = compared->outputs, &y = compared->label;
  for (size_t i = 0; i < examples.count(); ++i) {
    const float* row = p.data() + static_cast<int64_t>(i) * classes;
    const int64_t truth = static_cast<int64_t>(y[i]),
                  guess = std::max_element(row, row + classes) - row;
    if (truth < 0 || truth >= classes) continue;
    const bool finite = IsFinite({row, static_cast<size_t>(classes)});
    if (lines_.file) WriteExample(examples[i].name(), truth, guess, row[guess], finite);
    if (!finite) continue;
    counts_.Add(truth, guess);
    if (keeps_scores_) KeepRow({row, static_cast<size_t>(classes)}, static_cast<size_t>(truth));
    own_confidence_[static_cast<size_t>(truth)] += row[truth];
    verdicts_.push_back({row[guess], guess == truth});
    right_ += guess == truth;
    if (classes == 2) scored_.push_back({row[1], truth == 1});
    if (guess != truth)
      AddMistake({row[guess], examples[i].name(), truth, guess, TextOf(examples[i])}, examples[i]);
  }
}

void ClassReport::WriteExample(const std::string& example, int64_t truth, int64_t guess,
                               float score, bool finite) const {
  if (lines_.format == report::EachFormat::kJsonLines) {
    Json line = {
        {"file", example}, {"true", Name(truth)}, {"predicted", nullptr}, {"score", nullptr}};
    if (finite) line.update({{"predicted", Name(guess)}, {"score", score}});
    if (lines_.with_head) line["head"] = head().name;
    return lines_.file->Write(report::JsonText(line) + "\n");
  }
  const std::string of_head = lines_.with_head ? QuoteCsv(head().name) + "," : "";
  lines_.file->Write(format("{}{},{},{}\n", of_head, QuoteCsv(example), QuoteCsv(Name(truth)),
                            finite ? format("{},{}", QuoteCsv(Name(guess)), score) : ",nan"));
}

void ClassReport::KeepRow(std::span<const float> probabilities, size_t truth) {
  scores_.classes = probabilities.size();
  for (const float p : probabilities)
    scores_.logarithms.push_back(std::log(std::max(p, std::numeric_limits<float>::min())));
  scores_.truths.push_back(truth);
}

void ClassReport::AddMistake(Mistake mistake, const Example& example) {
  const bool among_worst =
      images_ > 0 && (depicted_.size() < images_ || mistake.score > depicted_.begin()->first);
  if (auto image = among_worst ? example.Shown(*reader_) : std::nullopt) {
    mistake.image = std::move(*image);
    if (depicted_.size() == images_) {
      // Of equal scores the first counts as the worse, here and in Finish.
      const auto least = std::prev(depicted_.upper_bound(depicted_.begin()->first));
      mistakes_[least->second].image = {};
      depicted_.erase(least);
    }
    depicted_.emplace(mistake.score, mistakes_.size());
  }
  mistakes_.push_back(std::move(mistake));
}

void ClassReport::Finish() {
  std::stable_sort(mistakes_.begin(), mistakes_.end(),
                   [](const Mistake& a, const Mistake& b) { return a.score > b.score; });
  depicted_.clear();
}

std::string ClassReport::Name(int64_t k) const {
  return static_cast<size_t>(k) < names_.size() ? names_[static_cast<size_t>(k)]
                                                : std::to_string(k);
}

std::vector<ClassReport::Row> ClassReport::Rows() const {
  std::vector<Row> rows;
  for (int64_t k = 0; k < counts_.classes(); ++k) {
    const int64_t truths = counts_.OfTruth(k), guesses = counts_.OfGuess(k);
    const auto hit = static_cast<double>(counts_.At(k, k));
    const double precision = guesses ? hit / static_cast<double>(guesses) : 0,
                 recall = truths ? hit / static_cast<double>(truths) : 0;
    const double f1 = precision + recall > 0 ? 2 * precision * recall / (precision + recall) : 0;
    rows.push_back({Name(k), precision, recall, f1, truths});
  }
  return rows;
}

namespace {

// `weights`: of each row.
ClassReport::Row MeanOf(const std::string& name, const std::vector<ClassReport::Row>& rows,
                        const std::vector<double>& weights) {
  ClassReport::Row mean{name};
  double sum = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    mean.precision += weights[k] * rows[k].precision;
    mean.recall += weights[k] * rows[k].recall;
    mean.f1 += weights[k] * rows[k].f1;
    mean.examples += rows[k].examples;
    sum += weights[k];
  }
  for (double* value : {&mean.precision, &mean.recall, &mean.f1})
    *value = sum > 0 ? *value / sum : 0;
  return mean;
}

}  // namespace

ClassReport::Row ClassReport::MacroMean() const {
  std::vector<double> weights;
  for (int64_t k = 0; k < counts_.classes(); ++k)
    weights.push_back(counts_.OfTruth(k) + counts_.OfGuess(k) > 0 ? 1 : 0);
  return MeanOf("macro mean", Rows(), weights);
}

ClassReport::Row ClassReport::WeightedMean() const {
  const std::vector<Row> rows = Rows();
  std::vector<double> weights;
  for (const Row& row : rows) weights.push_back(static_cast<double>(row.examples));
  return MeanOf("weighted mean", rows, weights);
}

double ClassReport::Accuracy() const {
  return verdicts_.empty() ? 0
                           : static_cast<double>(right_) / static_cast<double>(verdicts_.size());
}

bool ClassReport::LabelIsDoubtful(const Mistake& mistake) const {
  constexpr double kLeastAccuracy = 0.8;
  if (Accuracy() < kLeastAccuracy) return false;
  const int64_t examples = counts_.OfTruth(mistake.guess);
  const double confidence = own_confidence_[static_cast<size_t>(mistake.guess)];
  return examples > 0 && mistake.score >= confidence / static_cast<double>(examples);
}

namespace {

std::string RowText(const std::string& name, const ClassReport::Row& r, size_t width) {
  return format("{:<{}}  {:>9.4f}  {:>7.4f}  {:>7.4f}  {:>8}\n", name, width, r.precision, r.recall,
                r.f1, r.examples);
}

// As tables show them, shortened unless two of them would then be alike.
std::vector<std::string> NamesInTable(const std::vector<ClassReport::Row>& rows) {
  constexpr size_t kMost = 16;  // columns: a matrix of four classes fits 80
  std::vector<std::string> names;
  for (const ClassReport::Row& row : rows)
    names.push_back(report::NameInColumns(Printable(row.name), kMost));
  if (std::set(names.begin(), names.end()).size() < names.size()) {
    for (size_t k = 0; k < rows.size(); ++k) names[k] = Printable(rows[k].name);
  }
  return names;
}

}  // namespace

std::string ClassReport::Text(int worst, bool several) const {
  const std::vector<Row> rows = Rows();
  const Row macro = MacroMean(), weighted = WeightedMean();
  const std::vector<std::string> names = NamesInTable(rows);
  size_t width = weighted.name.size();
  for (const std::string& name : names) width = std::max(width, report::ColumnsOfName(name));
  constexpr size_t kMostTextShown = 160;  // bytes
  std::string text = several ? format("\n{}\n", head().name) : "";
  const Interval95 interval = AccuracyInterval();
  text += format("\n{} of {} right: accuracy {:.4f}, with 95 % confidence {:.3f} to {:.3f}\n",
                 right_, verdicts_.size(), Accuracy(), interval.low, interval.high);
  text += format("\n{:<{}}  {:>9}  {:>7}  {:>7}  {:>8}\n", "class", width, "precision", "recall",
                 "F1", "examples");
  for (size_t k = 0; k < rows.size(); ++k) text += RowText(names[k], rows[k], width);
  text += RowText(macro.name, macro, width) + RowText(weighted.name, weighted, width);
  if (counts_.classes() <= 25) text += ConfusionText(names, width);
  text += SurenessText();
  if (!mistakes_.empty() && worst > 0) text += "\nworst mistakes\n";
  for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
    const Mistake& m = mistakes_[i];
    text += format("  {}: {} predicted as {} ({:.3f}){}\n", Printable(m.example),
                   Printable(Name(m.truth)), Printable(Name(m.guess)), m.score,
                   LabelIsDoubtful(m) ? "; the label may be wrong" : "");
    if (!m.text.empty()) text += format("    {}\n", Printable(Shortened(m.text, kMostTextShown)));
  }
  return text;
}

// Every column as wide as its class's name.
std::string ClassReport::ConfusionText(const std::vector<std::string>& names, size_t width) const {
  constexpr size_t kLeast = 6;
  std::vector<size_t> widths;
  std::string text =
      "\nconfusion matrix (rows: true class, columns: predicted)\n" + std::string(width, ' ');
  for (int64_t k = 0; k < counts_.classes(); ++k) {
    const std::string& name = names[static_cast<size_t>(k)];
    widths.push_back(std::max(kLeast, report::ColumnsOfName(name)));
    text += format(" {:>{}}", name, widths.back());
  }
  text += "\n";
  for (int64_t k = 0; k < counts_.classes(); ++k) {
    text += format("{:<{}}", names[static_cast<size_t>(k)], width);
    for (int64_t guess = 0; guess < counts_.classes(); ++guess)
      text += format(" {:>{}}", counts_.At(k, guess), widths[static_cast<size_t>(guess)]);
    text += "\n";
  }
  return text;
}

// Calibration and thresholds.
std::string ClassReport::SurenessText() const {
  std::string text = format("\nexpected calibration error {:.4f} ({} bins){}\n",
                            ExpectedCalibrationError(CalibrationBins(verdicts_)), kCalibrationBins,
                            DescribeConfidence(verdicts_));
  text += format(
      "of the predictions with at least this score: how many, and how many of them "
      "are right\n{:>10}  {:>6}  {:>8}\n",
      "score", "kept", "accuracy");
  for (const ConfidenceThreshold& row : ConfidenceThresholds(verdicts_)) {
    if (row.kept == 0) continue;
    text += format("  >= {:<5.3g}  {:>6.4f}  {:>8}\n", row.threshold, row.kept,
                   TableCell(row.accuracy));
  }
  if (scored_.empty()) return text;
  text += format("\n{} where its probability is at least\n{:>9}  {:>9}  {:>7}  {:>7}\n",
                 Printable(Name(1)), "threshold", "precision", "recall", "F1");
  for (const DecisionThreshold& row : DecisionThresholds(scored_)) {
    text += format("{:>9.3g}  {:>9}  {:>7.4f}  {:>7.4f}\n", row.threshold, TableCell(row.precision),
                   row.recall, row.f1);
  }
  return text;
}

std::string ClassReport::CsvLines(bool with_head) const {
  std::string text;
  for (const Row& r : Rows()) {
    if (with_head) text += QuoteCsv(report::ListedName(head().name)) + ",";
    text += format("{},{},{},{},{}\n", QuoteCsv(report::ListedName(r.name)), r.precision, r.recall,
                   r.f1, r.examples);
  }
  return text;
}

namespace {

Json ToJson(const ClassReport::Row& r) {
  return {{"name", r.name},
          {"precision", r.precision},
          {"recall", r.recall},
          {"f1", r.f1},
          {"examples", r.examples}};
}

}  // namespace

namespace {

// A matrix; of many classes the pairs that occur: [true, predicted, examples].
Json ToJson(const ConfusionCounts& counts) {
  Json json = Json::array();
  for (int64_t k = 0; k < counts.classes(); ++k) {
    if (counts.classes() > kMostClassesInMatrix) {
      for (const auto& [guess, n] : counts.RowOf(k)) json.push_back({k, guess, n});
      continue;
    }
    Json& row = json.emplace_back(Json::array());
    for (int64_t guess = 0; guess < counts.classes(); ++guess) row.push_back(counts.At(k, guess));
  }
  return json;
}

}  // namespace

Json ClassReport::ToJson(int worst) const {
  Json classes = Json::array(), bins = Json::array(), confidence = Json::array(),
       decision = Json::array(), mistakes = Json::array();
  for (const Row& r : Rows()) classes.push_back(tasks::ToJson(r));
  const std::vector<CalibrationBin> calibration = CalibrationBins(verdicts_);
  for (const CalibrationBin& b : calibration) {
    bins.push_back({{"low", b.low},
                    {"high", b.high},
                    {"confidence", b.confidence},
                    {"accuracy", b.accuracy},
                    {"examples", b.examples}});
  }
  for (const ConfidenceThreshold& t : ConfidenceThresholds(verdicts_)) {
    confidence.push_back({{"threshold", t.threshold}, {"kept", t.kept}, {"accuracy", t.accuracy}});
  }
  for (const DecisionThreshold& t : DecisionThresholds(scored_)) {
    if (!scored_.empty())
      decision.push_back({{"threshold", t.threshold},
                          {"precision", t.precision},
                          {"recall", t.recall},
                          {"f1", t.f1}});
  }
  for (size_t i = 0; i < mistakes_.size() && i < static_cast<size_t>(worst); ++i) {
    const Mistake& m = mistakes_[i];
    mistakes.push_back({{"example", m.example},
                        {"true", Name(m.truth)},
                        {"predicted", Name(m.guess)},
                        {"score", m.score},
                        {"label_doubtful", LabelIsDoubtful(m)}});
    if (!m.text.empty()) mistakes.back()["text"] = m.text;
  }
  Json thresholds = {{"confidence", confidence}};
  if (!scored_.empty()) thresholds["decision"] = {{"positive", Name(1)}, {"rows", decision}};
  const Interval95 interval = AccuracyInterval();
  return {{"classes", classes},
          {"accuracy_interval", {interval.low, interval.high}},
          {"means", {tasks::ToJson(MacroMean()), tasks::ToJson(WeightedMean())}},
          {counts_.classes() <= kMostClassesInMatrix ? "confusion" : "confusion_pairs",
           tasks::ToJson(counts_)},
          {"calibration", {{"ece", ExpectedCalibrationError(calibration)}, {"bins", bins}}},
          {"thresholds", thresholds},
          {"worst_mistakes", mistakes}};
}

void ClassReport::AddTo(Json* result, int worst, bool several) const {
  if (several) {
    (*result)["heads"][head().name] = ToJson(worst);
  } else {
    result->update(ToJson(worst));
  }
}

void ClassReport::WriteFiles(const std::string& folder) const {
  WriteClassFiles(*this, folder);
}

}  // namespace mxtrain::tasks
