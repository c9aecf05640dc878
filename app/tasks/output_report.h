// SPDX-License-Identifier: Apache-2.0
#pragma once
// Evaluation of a head that gives a list of numbers for each example, each measured by itself:
// errors of values, hits and misses of classes.
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "app/tasks/report.h"

namespace mxtrain::tasks {

class OutputReport : public Report {
 public:
  // `names`: of the numbers; unless there is one for each, they are numbered from 1.
  OutputReport(Head head, std::vector<std::string> names)
      : Report(std::move(head)), names_(std::move(names)) {}

  // Lines: the example's name, the true numbers, the predicted ones.
  void WriteEach(const LineOutput& lines) override { lines_ = lines; }
  // Ignored if it has no label of the head's size.
  void Add(const Examples& examples, const std::vector<NDArray>& outputs) override;
  bool empty() const override { return outputs_ == 0; }
  std::string Text(int worst, bool several) const override;
  std::string CsvHeader() const override;  // output, measures
  std::string CsvLines(bool with_head) const override;
  void AddTo(Json* result, int worst, bool several) const override;

 protected:
  std::string Name(size_t k) const;

 private:
  // Adds number k of an example.
  virtual void AddNumber(size_t k, double truth, double prediction) = 0;
  // By name; the same names for all k.
  virtual std::vector<std::pair<const char*, double>> Measures(size_t k) const = 0;

  void WriteHeader() const;
  void WriteExample(const std::string& example, std::span<const float> truth,
                    std::span<const float> guess) const;

  const std::vector<std::string> names_;
  size_t outputs_ = 0;  // numbers of an example
  LineOutput lines_;
};

}  // namespace mxtrain::tasks
