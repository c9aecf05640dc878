// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a classifier: counts of (true class, predicted class), confidences, and the worst
// mistakes. One for each head that is a softmax over classes.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/commands/calibration.h"
#include "app/report/result_file.h"
#include "app/report/sample_sheet.h"
#include "app/session/pipeline_spec.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {

class ClassReport {
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
    io::Image image = {};  // of the worst ones, if the net takes images
  };

  // `classes`: names in the order of the label's values; others are numbered.
  ClassReport(LossReport::Head head, std::vector<std::string> classes)
      : head_(std::move(head)), names_(std::move(classes)) {}

  // Adds a batch; ignored if the head does not predict one class per example, or the batch has no
  // label for it. Examples whose scores are not finite are not counted.
  void Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter);
  // From now on, writes every added example there: [head,] file, true, predicted (classes), score;
  // no class and nan (in JSON null) if the scores are not finite.
  void WriteEach(report::ResultFile* out, report::EachFormat format, bool with_head) {
    each_ = out, each_format_ = format, each_with_head_ = with_head;
  }
  // From now on, keeps the images of the `count` worst mistakes.
  void KeepImages(int count, const report::ImageReader& reader) {
    images_ = static_cast<size_t>(count), reader_ = &reader;
  }
  // After the last batch: sorts the mistakes, the worst first.
  void Finish();

  bool empty() const { return counts_.empty(); }
  const std::string& head() const { return head_.name; }
  std::string Name(int64_t k) const;
  const std::vector<std::vector<int64_t>>& counts() const {
    return counts_;
  }                               // [true class][predicted class]
  std::vector<Row> Rows() const;  // a class each
  Row MacroMean() const;          // over the classes that occur as true or predicted class
  Row WeightedMean() const;       // over the examples
  double Accuracy() const;
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

  void Print(int worst) const;
  void PrintCsv(bool with_head) const;  // one line per class
  Json ToJson(int worst) const;

 private:
  void WriteExample(const std::string& example, int64_t truth, int64_t guess, float score,
                    bool finite) const;
  bool FindLabel(const DataBatch& batch, const NDArray& scores, const DataIter& iter,
                 NDArray* label) const;
  void AddMistake(Mistake mistake, const DataBatch& batch, int64_t row, const DataIter& iter,
                  std::vector<float>* pixels);
  void PrintRow(const Row& row, size_t width) const;
  void PrintConfusion(size_t width) const;
  void PrintSureness() const;

  LossReport::Head head_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> counts_;
  // By class: the sum of its probability over the examples with that label.
  std::vector<double> own_confidence_;
  std::vector<Verdict> verdicts_;
  std::vector<Scored> scored_;
  std::vector<Mistake> mistakes_;
  report::ResultFile* each_ = nullptr;
  report::EachFormat each_format_ = report::EachFormat::kCsv;
  bool each_with_head_ = false;
  size_t images_ = 0;
  const report::ImageReader* reader_ = nullptr;
  std::multimap<float, size_t> depicted_;  // score and index of the mistakes whose images are kept
};

// The class names of a label: the words of its column in the run's table, else `classes` if the net
// has no other label.
std::vector<std::string> ClassNamesOf(const LossReport& losses, const std::string& label,
                                      const std::vector<std::string>& classes,
                                      const session::PipelineSpec& run);
// One for each softmax among the heads of a net.
std::vector<ClassReport> ClassReportsOf(const Symbol& symbol,
                                        const std::vector<std::string>& classes,
                                        const session::PipelineSpec& run);

}  // namespace mxtrain::commands
