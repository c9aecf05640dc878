#pragma once
// What a model that names classes gets right and wrong: counts of (true class, predicted class), how sure it is, and the worst mistakes. One
// for each head that is a softmax over classes.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "app/commands/calibration.h"
#include "app/commands/pipeline_spec.h"
#include "app/report/result_file.h"
#include "app/report/sample_sheet.h"
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
    int64_t examples = 0;  // whose true class it is
  };
  struct Mistake {
    float score = 0;  // probability of the class that was predicted
    std::string example;
    int64_t truth = 0, guess = 0;
    io::Image picture = {};  // of the worst ones, where the net takes pictures
  };

  // `classes`: names in the order of the label's values; others are called by their numbers.
  ClassReport(LossReport::Head head, std::vector<std::string> classes) : head_(std::move(head)), names_(std::move(classes)) {}

  // Takes in a batch; nothing where the head does not give one class to an example, or the batch holds no label of it.
  void Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter);
  // From now on every example that is added is written there, as CSV: [head,] name, true class, predicted class, score.
  void WriteEach(report::ResultFile* out, bool with_head) { each_ = out, each_with_head_ = with_head; }
  // From now on the pictures of the `count` worst mistakes are kept.
  void KeepImages(int count, const report::ImageReader& reader) { images_ = static_cast<size_t>(count), reader_ = &reader; }
  // After the last batch: sorts the mistakes, the worst first.
  void Finish();

  bool empty() const { return counts_.empty(); }
  const std::string& head() const { return head_.name; }
  std::string Name(int64_t k) const;
  const std::vector<std::vector<int64_t>>& counts() const { return counts_; }  // [true class][predicted class]
  std::vector<Row> Rows() const;                                               // a class each
  Row MacroMean() const;     // over the classes that occur, as true or as predicted ones
  Row WeightedMean() const;  // over the examples
  double Accuracy() const;
  const std::vector<Verdict>& verdicts() const { return verdicts_; }
  const std::vector<Scored>& scored() const { return scored_; }  // of two classes, the second being the positive one; else empty
  const std::vector<Mistake>& mistakes() const { return mistakes_; }
  // Whether the label is the likelier one to be wrong: the net is at least as sure of the class that it predicts as it is, on average, of
  // that class where it is the label (Northcutt, Jiang and Chuang 2021, "Confident Learning", the off-diagonal of the confident joint). Never
  // for a net that is right in less than 4 of 5 examples: it is no witness.
  bool LabelIsDoubtful(const Mistake& mistake) const;

  void Print(int worst) const;
  void PrintCsv(bool with_head) const;  // a line per class
  Json ToJson(int worst) const;

 private:
  bool FindLabel(const DataBatch& batch, const NDArray& scores, const DataIter& iter, NDArray* label) const;
  void AddMistake(Mistake mistake, const DataBatch& batch, int64_t row, const DataIter& iter, std::vector<float>* pixels);
  void PrintRow(const Row& row, size_t width) const;
  void PrintConfusion(size_t width) const;
  void PrintSureness() const;

  LossReport::Head head_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> counts_;
  std::vector<double> own_confidence_;  // by class: sum of its probability over the examples that bear it as label
  std::vector<Verdict> verdicts_;
  std::vector<Scored> scored_;
  std::vector<Mistake> mistakes_;
  report::ResultFile* each_ = nullptr;
  bool each_with_head_ = false;
  size_t images_ = 0;
  const report::ImageReader* reader_ = nullptr;
  std::multimap<float, size_t> depicted_;  // score and place of the mistakes whose pictures are kept
};

// What the classes of a label are called: as the words of its column in the run's table, else `classes`, where the net has no other label.
std::vector<std::string> ClassNamesOf(const LossReport& losses, const std::string& label, const std::vector<std::string>& classes, const PipelineSpec& run);
// One for each softmax among the heads of a net.
std::vector<ClassReport> ClassReportsOf(const Symbol& symbol, const std::vector<std::string>& classes, const PipelineSpec& run);

}  // namespace mxtrain::commands
