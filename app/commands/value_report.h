#pragma once
// What a model that gives values gets right: of a regression the errors of each output, of any number of classes how each is found. One for each
// head with a label that is no softmax.
#include <string>
#include <vector>

#include "app/commands/pipeline_spec.h"
#include "app/report/result_file.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {

class ValueReport {
 public:
  // `names`: of the outputs, classes or columns of a table; without as many as there are outputs they are called by their numbers, from 1.
  ValueReport(LossReport::Head head, std::vector<std::string> names) : head_(std::move(head)), names_(std::move(names)) {}

  // From now on every example that is added is written there, as CSV: its name, the true values, the predicted ones.
  void WriteEach(report::ResultFile* out) { each_ = out; }
  // Takes in a batch; nothing where it holds no label of the head's shape.
  void Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter);

  bool empty() const { return outputs_.empty(); }
  void Print() const;
  Json ToJson() const;

 private:
  // Sums over the examples of one output.
  struct Output {
    double count = 0, absolute = 0, squared = 0, truth = 0, truth_squared = 0;
    int64_t hits = 0, false_alarms = 0, misses = 0;  // of a class that is there from 0.5 on
    void Add(double y, double prediction);
    double R2() const;  // 1 - squared error / variance; 0 where the truth is one value
  };
  bool classes() const { return head_.kind == LossReport::Head::Kind::kLogistic; }
  std::string Name(size_t k) const;
  void WriteHead() const;
  std::vector<std::pair<const char*, double>> Measures(const Output& output) const;

  LossReport::Head head_;
  std::vector<std::string> names_;
  std::vector<Output> outputs_;
  report::ResultFile* each_ = nullptr;
};

// What the outputs of a head of values are called: by the classes, where it gives any number of them, else by the columns of the table that the
// model was trained on. Empty where nothing names them.
std::vector<std::string> NamesOfValues(const LossReport::Head& head, const std::vector<std::string>& classes, const PipelineSpec& run);
// For every such head of a net.
std::vector<ValueReport> ValueReportsOf(const Symbol& symbol, const std::vector<std::string>& classes, const PipelineSpec& run);

}  // namespace mxtrain::commands
