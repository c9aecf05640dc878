// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a classifier: counts of (true class, predicted class), confidences, and the worst
// mistakes. One for each head that is a softmax over classes.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/tasks/classification/calibration.h"
#include "app/tasks/classification/confusion_counts.h"
#include "app/tasks/report.h"

namespace mxtrain::tasks {

class ClassReport final : public Report {
 public:
  // Precision, recall and F1 of a class, or their mean over classes; 0 where undefined.
  struct Row {
    std::string name;
    double precision = 0, recall = 0, f1 = 0;
    int64_t examples = 0;  // with this true class
  };
  struct Mistake {
    float score = 0;  // probability of the predicted class
    std::string example;
    int64_t truth = 0, guess = 0;
    std::string text = {};  // of the example, if it is one
    io::Image image = {};   // of the worst ones, if the net takes images
  };

  // `classes`: names in the order of the label's values; others are numbered.
  ClassReport(Head head, std::vector<std::string> classes)
      : Report(std::move(head)), names_(std::move(classes)) {}

  // Lines: [head,] file, true, predicted (classes), score; no class and nan (in JSON null) if the
  // scores are not finite.
  void WriteEach(const LineOutput& lines) override;
  bool SharesLines() const override { return true; }
  // The images of the worst mistakes.
  void KeepImages(int count, const report::ImageReader& reader) override {
    images_ = static_cast<size_t>(count), reader_ = &reader;
  }
  bool KeepScores() override {
    if (!head().loss || head().loss->kind != LossReport::Head::Kind::kSoftmax) return false;
    return keeps_scores_ = true;
  }
  double Temperature() const override { return FitTemperature(scores_); }
  // Ignored if the head does not predict one class per example, or the batch has no label of one
  // class for it. Examples whose scores are not finite are not counted.
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  void Finish() override;  // sorts the mistakes, the worst first

  bool empty() const override { return counts_.classes() == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override { return "class,precision,recall,f1,examples"; }
  std::string CsvLines(bool with_head) const override;  // one for each class
  void AddTo(Json* result, int worst, bool several) const override;
  void WriteFiles(const std::string& folder) const override;

  std::string Name(int64_t k) const;
  const ConfusionCounts& counts() const { return counts_; }
  std::vector<Row> Rows() const;  // a class each
  Row MacroMean() const;          // over the classes that occur as true or predicted class
  Row WeightedMean() const;       // over the examples
  double Accuracy() const;
  Interval95 AccuracyInterval() const { return WilsonInterval(right_, std::ssize(verdicts_)); }
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  const std::vector<Scored>& scored() const {
    return scored_;
  }  // for two classes, the second being positive; else empty
  const std::vector<Mistake>& mistakes() const { return mistakes_; }
  // Whether the label is more likely wrong than the prediction: the net is at least as confident in
  // its predicted class as on average for examples with that label (Northcutt, Jiang and Chuang
  // 2021, "Confident Learning", the off-diagonal of the confident joint). Never for a net with
  // accuracy below 4/5.
  bool LabelIsDoubtful(const Mistake& mistake) const;

  Json ToJson(int worst) const;

 private:
  void WriteExample(const std::string& example, int64_t truth, int64_t guess, float score,
                    bool finite) const;
  void KeepRow(std::span<const float> probabilities, size_t truth);
  void AddMistake(Mistake mistake, const Example& example);
  std::string ConfusionText(const std::vector<std::string>& names, size_t width) const;
  std::string SurenessText() const;

  std::vector<std::string> names_;
  ConfusionCounts counts_;
  int64_t right_ = 0;  // of verdicts_
  // By class: the sum of its probability over the examples with that label.
  std::vector<double> own_confidence_;
  std::vector<Verdict> verdicts_;
  std::vector<Scored> scored_;
  std::vector<Mistake> mistakes_;
  bool keeps_scores_ = false;
  ScoresOfClasses scores_;
  LineOutput lines_;
  size_t images_ = 0;
  const report::ImageReader* reader_ = nullptr;
  std::multimap<float, size_t> depicted_;  // score and index of the mistakes whose images are kept
};

}  // namespace mxtrain::tasks
