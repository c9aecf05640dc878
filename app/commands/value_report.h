// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a head with a label that is not a softmax: errors per output of a regression, or
// per-class results of a multi-label head.
#include <span>
#include <string>
#include <vector>

#include "app/report/result_file.h"
#include "app/session/pipeline_spec.h"
#include "mxtrain/base/json.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/train/loss_report.h"

namespace mxtrain::commands {

class ValueReport {
 public:
  // `names`: of the outputs, classes or columns of a table; unless there is one per output, outputs
  // are numbered from 1.
  ValueReport(LossReport::Head head, std::vector<std::string> names)
      : head_(std::move(head)), names_(std::move(names)) {}

  // From now on, writes every added example there: its name, the true values, the predicted values.
  void WriteEach(report::ResultFile* out, report::EachFormat format) {
    each_ = out, each_format_ = format;
  }
  // Adds a batch; ignored if it has no label of the head's shape.
  void Add(const DataBatch& batch, const std::vector<NDArray>& outputs, const DataIter& iter);

  bool empty() const { return outputs_.empty(); }
  void Print() const;
  Json ToJson() const;

 private:
  // Sums over the examples of one output.
  struct Output {
    double count = 0, absolute = 0, squared = 0, truth = 0, truth_squared = 0;
    int64_t hits = 0, false_alarms = 0, misses = 0;  // of a class predicted from a score of 0.5
    void Add(double y, double prediction);
    double R2() const;  // 1 - squared error / variance; 0 if all true values are equal
  };
  bool classes() const { return head_.kind == LossReport::Head::Kind::kLogistic; }
  std::string Name(size_t k) const;
  void WriteHead() const;
  void WriteExample(const std::string& example, std::span<const float> truth,
                    std::span<const float> guess) const;
  std::vector<std::pair<const char*, double>> Measures(const Output& output) const;

  LossReport::Head head_;
  std::vector<std::string> names_;
  std::vector<Output> outputs_;
  report::ResultFile* each_ = nullptr;
  report::EachFormat each_format_ = report::EachFormat::kCsv;
};

// The names of the outputs of a head of values: classes for a multi-label head, else columns of the
// table that the model was trained on. Empty if there are none.
std::vector<std::string> NamesOfValues(const LossReport::Head& head,
                                       const std::vector<std::string>& classes,
                                       const session::PipelineSpec& run);
// One for every such head of a net.
std::vector<ValueReport> ValueReportsOf(const Symbol& symbol,
                                        const std::vector<std::string>& classes,
                                        const session::PipelineSpec& run);

}  // namespace mxtrain::commands
