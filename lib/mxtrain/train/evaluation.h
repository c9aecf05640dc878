#pragma once
// Metrics and losses of a net on a data set, and its predictions. The executor runs in evaluation mode, on parameters that it may share with a
// training executor.
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/train/events.h"
#include "mxtrain/train/loss_report.h"
#include "mxtrain/train/net_inputs.h"

namespace mxtrain {

struct MetricSpec {
  std::string name;
  Kwargs params;
  std::string output;  // name of a head ("softmax" or "softmax_output"); "": the first loss
  std::string label;   // name of a label input; "": the one of that loss
};

// The metrics of a net, each tied to its output and label.
class MXTRAIN_API MetricSet {
 public:
  // Throws kConfig for outputs and labels that the net does not have, with the nearest. A metric is called as its kind; where several are of
  // one kind, OUTPUT_KIND ("left_accuracy"), and two of one kind on one output are refused. `labels` are those of the data: what is predicted of one
  // that is standardised is measured in the units that it had before.
  MetricSet(const Symbol& symbol, const LossReport& losses, const std::vector<MetricSpec>& specs, const std::vector<DataDesc>& labels);

  // Arrays of one batch by name; plain float32. Labels that the data lack are an error.
  void Update(const std::vector<TBlob>& outputs, const std::map<std::string, TBlob>& labels, int64_t count);
  void Reset();
  NamedValues Values() const;
  // By metric name; `loss` is not one of them. Throws kConfig with the nearest name.
  bool HigherIsBetter(const std::string& name) const;
  std::vector<std::string> Names() const;
  std::vector<std::string> SaveState() const;
  void RestoreState(const std::vector<std::string>& states);

 private:
  void NameItems(const std::vector<std::string>& outputs);
  struct Item {
    std::unique_ptr<Metric> metric;
    std::string name;  // in reports
    int output;
    std::string label;
    std::optional<Standardization> units;  // of the label
  };
  std::vector<Item> items_;
};

// Losses and metrics of a net over the batches of an epoch.
class MXTRAIN_API EpochScores {
 public:
  // Throws as MetricSet.
  EpochScores(const Symbol& symbol, const std::vector<MetricSpec>& metrics, const std::vector<DataDesc>& labels);

  // Takes in the first `count` examples of a batch: its outputs in the net's order and its labels by name, plain, in host memory, of any
  // element type. A loss whose label is not there is not known, and so are all until the next Reset. Throws as LossReport and MetricSet.
  void Add(const std::vector<TBlob>& outputs, const std::map<std::string, TBlob>& labels, int64_t count);
  void Reset();
  // "loss", and that of each head where there are several, as far as they are known; then the metrics.
  NamedValues Values() const;

  const LossReport& loss() const { return loss_; }
  LossReport& loss() { return loss_; }
  const MetricSet& metrics() const { return metrics_; }
  MetricSet& metrics() { return metrics_; }

 private:
  LossReport loss_;
  MetricSet metrics_;
  bool loss_known_ = true;
  // Of the batch that is added, in float32; kept so that the next one allocates nothing.
  std::vector<TBlob> outputs_;
  std::map<std::string, TBlob> labels_;
  std::vector<std::vector<float>> output_room_;
  std::map<std::string, std::vector<float>> label_room_;
};

// The arrays of a batch in the order of an executor's inputs, by the names that the iterator gives them.
class MXTRAIN_API InputOrder {
 public:
  // Throws kConfig when the data do not give an input.
  InputOrder(const Executor& executor, const DataIter& iter);
  void Arrange(const DataBatch& batch, std::vector<NDArray>* inputs) const;

 private:
  struct Place {
    bool label;
    size_t index;
  };
  std::vector<Place> places_;
};

class MXTRAIN_API Evaluation {
 public:
  // `shared`: a training executor whose parameters and arena are used; null: parameters are made, and set through executor().
  Evaluation(Runtime& runtime, const Symbol& symbol, DataIter& iter, const std::vector<MetricSpec>& metrics, Executor* shared, Context ctx,
             const ComputeModes& modes = {});

  // Called for each batch, in order, with its outputs, plain, after they were computed; the next one is being computed then. The arrays
  // hold them until it returns.
  using OnBatch = std::function<void(const DataBatch& batch, const std::vector<NDArray>& outputs)>;
  // One pass over the data: "loss" (when the net has one and labels are given), then the metrics. `stop`: checked between batches.
  NamedValues Run(const OnBatch& on_batch = {}, const std::function<bool()>& stop = {});
  Executor& executor() { return *executor_; }
  // Label inputs of losses that the data do not give: zeros, no parameters.
  std::vector<std::string> MissingLabels() const;

 private:
  Runtime& runtime_;
  DataIter& iter_;
  std::unique_ptr<Executor> executor_;
  // A batch, and its outputs where the host can read them while the executor's own are overwritten.
  struct Flight {
    DataBatch batch;
    std::vector<NDArray> outputs;
  };
  void Launch(const InputOrder& order, Flight* flight);
  void TakeIn(const Flight& flight, const OnBatch& on_batch);

  EpochScores scores_;
  Flight flights_[2];  // in turn
};

}  // namespace mxtrain
