#pragma once
// What a model that names classes gets right and wrong: counts of (true class, predicted class), and the worst mistakes. One for each head
// that is a softmax over classes.
#include <cstdint>
#include <iosfwd>
#include <string>
#include <vector>

#include "mxtrain/base/json.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {

class ClassReport {
 public:
  // `classes`: names in the order of the label's values; others are called by their numbers.
  ClassReport(LossReport::Head head, std::vector<std::string> classes) : head_(std::move(head)), names_(std::move(classes)) {}

  // Takes in a batch; nothing where the head does not give one class to an example, or the batch holds no label of it.
  void Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter);
  // From now on every example that is added is written there, as CSV: [head,] name, true class, predicted class, score.
  void WriteEach(std::ostream* out, bool with_head) { each_ = out, each_with_head_ = with_head; }

  bool empty() const { return counts_.empty(); }
  const std::string& head() const { return head_.name; }
  void Print(int worst);
  void PrintCsv(bool with_head) const;  // a line per class
  Json ToJson(int worst);

 private:
  struct Row {
    double precision, recall, f1;
    int64_t examples;
  };
  struct Mistake {
    float score;
    std::string name;
    int64_t truth, guess;
  };
  Row Of(size_t k) const;
  std::string Name(int64_t k) const;
  void PrintConfusion(size_t width) const;
  void SortMistakes();

  LossReport::Head head_;
  std::vector<std::string> names_;
  std::vector<std::vector<int64_t>> counts_;
  std::vector<Mistake> mistakes_;
  std::ostream* each_ = nullptr;
  bool each_with_head_ = false;
};

// One for each softmax among the heads of a net. `classes` are those of the only label, where there is only one.
std::vector<ClassReport> ClassReportsOf(const Symbol& symbol, const std::vector<std::string>& classes);

}  // namespace mxtrain::commands
