// SPDX-License-Identifier: Apache-2.0
#pragma once
// A task is a kind of learning: what the labels of a head mean, how its predictions are measured,
// written and shown, and what data of this kind looks like. Commands ask the task and know none.
//
// Each kind is in a folder of its own (classification/, multilabel/, regression/, image_to_image/)
// and registers itself (task_list.h). How labels move with their image and become rows of a batch
// is said by the kind of their field (mxtrain/io/source.h), which the pipeline knows; what a loss
// reports, by the loss (mxtrain/train/loss_report.h).
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "app/report/sample_sheet.h"
#include "app/tasks/head.h"
#include "app/tasks/prediction.h"
#include "app/tasks/report.h"
#include "mxtrain/base/log.h"
#include "mxtrain/io/source.h"
#include "mxtrain/train/evaluation.h"

namespace mxtrain::tasks {

// What does not fit, or looks wrong, and what to do about it.
struct Finding {
  LogLevel level = LogLevel::kWarning;  // or kError
  std::string text, help;
};

// How another program reads an output of a model.
struct OutputMeaning {
  std::string key;   // under which the file's metadata hold it: "units"
  std::string text;  // "'price' is standardized; ..."
};

class Task;
// task_list.h
std::unique_ptr<Task> TaskOf(const Head& head, std::string_view preferred);

// The task of one head. Immutable; calls may come from any thread.
class Task {
 public:
  explicit Task(Head head) : head_(std::move(head)) {}
  virtual ~Task() = default;
  Task(const Task&) = delete;
  Task& operator=(const Task&) = delete;
  const Head& head() const { return head_; }
  const std::string& kind() const { return kind_; }  // the name of its TaskKind

  // --- training
  // The metric of a run that names none; the first head's chooses `best`.
  virtual MetricSpec DefaultMetric() const = 0;
  // Why a label that is a set of classes (label_delim) does not fit; nothing if it does.
  virtual std::optional<Finding> RefuseSets() const;
  // Whether labels are numbers with units, which `normalize: auto` of a table standardizes.
  virtual bool TakesNumbers() const { return false; }
  // The data's classes against those of the head.
  virtual std::optional<Finding> CompareClasses(const std::vector<std::string>& /*classes*/) const {
    return std::nullopt;
  }
  // What is odd about the labels of a data set, a sentence each; that classes are missing, of
  // training data alone.
  virtual std::vector<std::string> OddLabels(const io::Source& /*data*/, bool /*training*/) const {
    return {};
  }
  // Adds the label of one example to its image as the net reads it, on the sheet of the first
  // batch: a line below it, or what is drawn on it or beside it. `shape`: of the label.
  virtual void Show(std::span<const float> /*label*/, const TShape& /*shape*/,
                    report::SheetImage* /*shown*/) const {}

  // --- evaluation and prediction
  virtual std::unique_ptr<Report> NewReport() const = 0;
  // Null for numbers that are not written one example at a time: a long list, a class per pixel.
  virtual std::unique_ptr<Predictor> NewPredictor(const PredictionOptions& options) const = 0;
  // What an exported model tells users of other programs; nothing if the numbers say all.
  virtual std::optional<OutputMeaning> MeaningOfOutput() const { return std::nullopt; }

 private:
  friend std::unique_ptr<Task> TaskOf(const Head& head, std::string_view preferred);
  const Head head_;
  std::string kind_;
};

// What is odd about the labels of a data set, by all tasks, each finding once: "data.train: ...".
std::vector<std::string> OddLabels(const std::vector<std::unique_ptr<Task>>& tasks,
                                   const io::Source& data, bool training);

}  // namespace mxtrain::tasks
