// SPDX-License-Identifier: Apache-2.0
#pragma once
// Metrics, losses and predictions of a net on a data set. The executor runs in evaluation mode and
// may share parameters with a training executor.
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/train/carry.h"
#include "mxtrain/train/events.h"
#include "mxtrain/train/loss_report.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {

// The name of a head in options and reports: "softmax" of the output "softmax_output".
MXTRAIN_API std::string HeadName(std::string output);

struct MetricSpec {
  std::string name;
  Kwargs params;
  // Name of a head ("softmax" or "softmax_output"); "": the first loss with a label, or, without
  // one, the first that LabelsBesideLosses names.
  std::string output;
  std::string label;  // name of a label input; "": that of the head
};

// The metrics of a net, each bound to its output and label.
class MXTRAIN_API MetricSet {
 public:
  // Throws kConfig for unknown outputs and labels, with the nearest name. A metric is named by its
  // kind; several of one kind by OUTPUT_KIND ("left_accuracy"); two of one kind on one output are
  // rejected. `labels`: those of the data; predictions of a standardized one are measured in its
  // original units.
  MetricSet(const Symbol& symbol, const LossReport& losses, const std::vector<MetricSpec>& specs,
            const std::vector<DataDesc>& labels);

  // Arrays of one batch by name; plain float32. A missing label is an error. With kExampleWeight
  // among the labels, examples have weights; throws kConfig for a metric that takes none.
  void Update(const std::vector<TBlob>& outputs, const std::map<std::string, TBlob>& labels,
              int64_t count);
  void Reset();
  NamedValues Values() const;
  // By metric name, without `loss`. Throws kConfig with the nearest name.
  bool HigherIsBetter(const std::string& name) const;
  std::vector<std::string> Names() const;
  std::vector<std::string> SaveState() const;
  void RestoreState(const std::vector<std::string>& states);  // throws kData
  // Adds the examples of another set of these metrics, from its saved states. Throws kData.
  void Merge(const std::vector<std::string>& states);

 private:
  void CheckStates(const std::vector<std::string>& states) const;
  void NameItems(const std::vector<std::string>& outputs);
  struct Item {
    std::unique_ptr<Metric> metric;
    std::string name;  // in reports
    int output;
    std::string label;
    std::optional<Standardization> units;  // of the label
    bool of_losses = false;                // the output is the loss of each row
  };
  std::vector<Item> items_;
};

// Losses and metrics of a net over the batches of an epoch.
class MXTRAIN_API EpochScores {
 public:
  // Throws like MetricSet.
  EpochScores(const Symbol& symbol, const std::vector<MetricSpec>& metrics,
              const std::vector<DataDesc>& labels);

  // Adds the first `count` examples of a batch: outputs in the net's order and labels by name,
  // with their weights as kExampleWeight, plain, in host memory, of any element type. If a loss
  // lacks its label, all losses are unknown until the next Reset. Throws like LossReport and
  // MetricSet.
  void Add(const std::vector<TBlob>& outputs, const std::map<std::string, TBlob>& labels,
           int64_t count);
  void Reset();
  // "loss", and the loss of each head if there are several, as far as known; then the metrics.
  NamedValues Values() const;

  // The state as lines of text: whether the losses are known, their sums, and those of each metric.
  // Merge adds the batches of other scores of this net and these metrics. Both throw kData, after
  // which the scores must be Reset.
  std::string SaveState() const;
  void RestoreState(const std::string& text);
  void Merge(const std::string& state);

  const LossReport& loss() const { return loss_; }
  LossReport& loss() { return loss_; }
  const MetricSet& metrics() const { return metrics_; }
  MetricSet& metrics() { return metrics_; }

 private:
  LossReport loss_;
  MetricSet metrics_;
  bool loss_known_ = true;
  // Of the batch being added, in float32; kept to avoid allocations.
  std::vector<TBlob> outputs_;
  std::map<std::string, TBlob> labels_;
  std::vector<std::vector<float>> output_room_;
  std::map<std::string, std::vector<float>> label_room_;
};

// Arranges the arrays of a batch in the order of an executor's inputs, by the iterator's names.
class MXTRAIN_API InputOrder {
 public:
  // Throws kConfig if the data lack an input other than those of `not_data`, whose places stay
  // empty.
  InputOrder(const Executor& executor, const DataIter& iter,
             const std::vector<std::string>& not_data = {});
  void Arrange(const DataBatch& batch, std::vector<NDArray>* inputs) const;

 private:
  struct Place {
    bool label;
    size_t index;
  };
  std::vector<std::optional<Place>> places_;
};

class MXTRAIN_API Evaluation {
 public:
  // `shared`: a training executor whose parameters and arena are used; null: parameters are
  // allocated, and set through executor(). `carry`: layers whose states go on from batch to batch
  // (train/carry.h), zero before the first.
  Evaluation(Runtime& runtime, const Symbol& symbol, DataIter& iter,
             const std::vector<MetricSpec>& metrics, Executor* shared, Context ctx,
             const ComputeModes& modes = {}, const std::vector<std::string>& carry = {});

  // Called for each batch, in order, with its plain outputs once computed, while the next batch is
  // being computed. The arrays are valid until it returns.
  using OnBatch = std::function<void(const DataBatch& batch, const std::vector<NDArray>& outputs)>;
  // One pass over the data: "loss" (if the net has one and labels are given), then the metrics.
  // `stop`: checked between batches. `values`: instead of the scores' own, for a rank that has seen
  // a part of the data.
  NamedValues Run(const OnBatch& on_batch = {}, const std::function<bool()>& stop = {},
                  const std::function<NamedValues(EpochScores*)>& values = {});
  // With batches of several sizes, that of the largest; the others share its arrays and arena.
  Executor& executor() { return *executor_; }
  size_t num_outputs() const { return net_.outputs; }  // of a batch
  // Labels missing from the data that no output depends on (VariablesRead), and the parameters of
  // layers that only compute a label: filled with zeros unless shared, and need no values.
  const std::vector<std::string>& MissingLabels() const { return missing_labels_; }

 private:
  Runtime& runtime_;
  DataIter& iter_;
  const CarryingNet net_;
  const BatchSizes sizes_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Executor>> smaller_;  // by size, without the largest
  std::unique_ptr<CarriedStates> carried_;
  std::vector<std::string> missing_labels_;
  // A batch, and copies of its outputs for the host while the executor's own are overwritten.
  struct Flight {
    DataBatch batch;
    std::vector<NDArray> outputs;
  };
  void Launch(const InputOrder& order, Flight* flight);
  void TakeIn(const Flight& flight, const OnBatch& on_batch);

  EpochScores scores_;
  Flight flights_[2];  // alternating
};

}  // namespace mxtrain
