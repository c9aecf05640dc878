// SPDX-License-Identifier: Apache-2.0
#pragma once
// The evaluation of a head over the examples of a data set, as `eval` prints and writes it.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/report/result_file.h"
#include "app/tasks/example.h"
#include "app/tasks/head.h"
#include "mxtrain/base/json.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain::tasks {

// The numbers of a head and of its label for a batch, as the label has them: [N, width] each, in
// the units of the data.
struct ComparedBatch {
  TShape outputs_shape, label_shape;
  std::vector<float> outputs, label;
};
// Nothing if the batch has no label for the head. `outputs`: of the net. Waits for the arrays.
std::optional<ComparedBatch> Compare(const Head& head, const Examples& examples,
                                     const std::vector<NDArray>& outputs);

// Where a report writes one line for each example.
struct LineOutput {
  report::ResultFile* file = nullptr;  // null: nowhere
  report::EachFormat format = report::EachFormat::kCsv;
  bool with_head = false;  // beside the reports of other heads, whose names tell the lines apart
  bool begins = true;  // whether it writes the header of CSV; another report of the task does not
};

// Not thread-safe.
class Report {
 public:
  explicit Report(Head head) : head_(std::move(head)) {}
  virtual ~Report() = default;
  Report(const Report&) = delete;
  Report& operator=(const Report&) = delete;
  const Head& head() const { return head_; }

  // From now on, writes every added example there. Called before the first Add.
  virtual void WriteEach(const LineOutput& lines) = 0;
  // Whether the reports of several heads of its task write lines of one form, into one file; else
  // only the first writes them.
  virtual bool SharesLines() const { return false; }
  // From now on, keeps the images of the `count` worst examples. The reader outlives the report.
  virtual void KeepImages(int /*count*/, const report::ImageReader& /*reader*/) {}

  // From now on, keeps what a temperature or thresholds are fitted to; false if scores of this kind
  // have neither.
  virtual bool KeepScores() { return false; }
  // After Finish, with KeepScores: by what the logits of the head are to be divided.
  virtual double Temperature() const { return 1; }
  // After Finish, with KeepScores: from which score on each class is predicted, of heads that
  // predict any number of them; empty: of others.
  virtual std::vector<double> Thresholds() const { return {}; }
  // Before the first Add, or after KeepScores at any time: what Thresholds gave, here or on other
  // data. What was counted before is counted by these.
  virtual void UseThresholds(const std::vector<double>& /*thresholds*/) {}

  // Whether the examples may be tiles of images, whose results are joined.
  virtual bool TakesTiles() const { return false; }
  // Adds a batch; ignored if it has no label for the head, of a form that fits.
  virtual void Add(const Examples& examples, const std::vector<NDArray>& outputs) = 0;
  virtual void Finish() {}  // after the last batch
  virtual bool empty() const = 0;

  // After Finish. `worst`: how many of the worst examples to list; `several`: there are reports of
  // this task on other heads, too.
  virtual std::string Text(int worst, bool several) const = 0;
  // CSV, one line for each class, output or whatever it measures; with and without the name of the
  // head. "" for none.
  virtual std::string CsvHeader() const { return ""; }
  virtual std::string CsvLines(bool /*with_head*/) const { return ""; }
  // Where there are `several`, under a name that differs from head to head.
  virtual void AddTo(Json* result, int worst, bool several) const = 0;
  // Tables and figures into a folder, which is created. Throws kFileSystem.
  virtual void WriteFiles(const std::string& /*folder*/) const {}

 private:
  const Head head_;
};

}  // namespace mxtrain::tasks
