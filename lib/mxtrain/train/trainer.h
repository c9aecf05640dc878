// SPDX-License-Identifier: Apache-2.0
#pragma once
// The training loop: batches into executors, gradients through the KVStore to the optimizer,
// evaluation after each epoch, checkpoints.
//
// A run is a pure function of its options, the data and the number of threads: killed at any point
// and resumed from its checkpoint, it gives the same bits as an uninterrupted run.
#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/recycler.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/metric/metric.h"
#include "mxtrain/optimizer/lr_schedule.h"
#include "mxtrain/optimizer/patience.h"
#include "mxtrain/train/best_epochs.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/data_wait.h"
#include "mxtrain/train/evaluation.h"
#include "mxtrain/train/events.h"
#include "mxtrain/train/net_inputs.h"
#include "mxtrain/train/weight_average.h"
#include "mxtrain/train/weights.h"

namespace mxtrain {

// Name and parameters of a factory-made object.
struct NamedSpec {
  std::string name;
  Kwargs params;
};

// How often to save; zero disables a criterion.
struct SavePolicy {
  int64_t every_epochs = 1, every_steps = 0;
  double every_seconds = 0;
  int keep = 3;  // files epoch-*; 0: all
};

// Early stopping on the first of best_metrics: after `patience` epochs that did not improve the
// best value by more than min_delta (zero: never), or after an epoch that reached `target`.
struct EarlyStop {
  int64_t patience = 0;
  double min_delta = 0;
  std::optional<double> target = std::nullopt;
};

struct TrainOptions {
  Symbol symbol;
  // Stored in checkpoints; symbol_json, inputs, labels and batch_size are set by the trainer.
  // kernel_choices, from the resumed checkpoint, take effect before binding.
  ModelInfo model;
  // Devices of the workers: each has an executor and an equal part of every batch, whose size must
  // be divisible. One device may have several. Evaluation and checkpoints use the first.
  std::vector<Context> workers{Context::cpu()};
  ComputeModes modes;           // of training and evaluation
  bool measure_kernels = true;  // chooses among a library's kernels by measuring, if the backend
                                // has choices; not with modes.deterministic
  executor::MemoryBudget memory_budget;  // per device, shared by its workers
  int64_t epochs = 1;
  int64_t max_steps = 0;           // 0: no limit
  double time_limit_seconds = 0;   // of one Run; 0: no limit
  int64_t grad_accum = 1;          // batches per step: gradients are summed as for one large batch
  NamedSpec optimizer{"sgd", {}};  // its `learning_rate` and `wd` are the base values
  NamedSpec lr_schedule{"constant", {}};
  LrPatterns lr_mult;                   // by parameter name pattern; 0 freezes
  NamedSpec initializer{"xavier", {}};  // of weights
  std::vector<std::pair<std::string, NamedSpec>>
      initializers;  // by parameter name pattern; the last match wins
  std::vector<MetricSpec> metrics;
  std::vector<std::string> best_metrics;  // one checkpoint each, `best` and best-METRIC; none: the
                                          // first metric; may be "loss"
  EarlyStop early_stop;
  std::optional<double> average_decay;   // weight averages (weight_average.h), used by evaluation
  std::optional<double> clip_norm;       // global norm of gradients, after scaling by 1 / batch
  std::string kvstore = "local";         // or "device": one GPU per worker
  CommunicatorFactory new_communicator;  // of `device`; empty: NewGpuCommunicator
  SavePolicy save;
  std::string checkpoint_folder;  // "": nothing is saved
  int64_t report_steps = 0;       // steps between OnStep events; 0: by time
  double report_seconds = 0.2;    // minimum time between OnStep events
};

// Why a run ended: epochs or steps done, stop flag, EarlyStop's patience, time_limit_seconds,
// EarlyStop's target, DivergedError.
enum class RunEnd { kComplete, kStopped, kNoImprovement, kTimeLimit, kTarget, kDiverged };

struct TrainResult {
  int64_t epochs = 0, steps = 0;
  int64_t total_steps = 0;      // planned; the schedule spans them
  double lr = 0, last_lr = 0;   // learning rate of the last step made, and of the last planned one
  std::vector<BestValue> best;  // of each of best_metrics
  bool higher_is_better = false;  // of the first
  NamedValues last;  // values of the last epoch: validation, or training without validation data
  double images_per_second = 0;  // training only, excluding the process's first 20 batches
  double wait_share = 0;         // fraction of that time spent waiting for data (data_wait.h)
  RunEnd end = RunEnd::kComplete;
};

// The loss was non-finite, or gradients overflow in float16 at every scale. `step` counts from 1;
// `examples`: names of those in its batch; empty for overflowing gradients, of that step or one
// shortly before.
class MXTRAIN_API DivergedError : public Error {
 public:
  DivergedError(const std::string& message, int64_t step, std::vector<std::string> examples)
      : Error(ErrorKind::kDiverged, message), step_(step), examples_(std::move(examples)) {}
  int64_t step() const { return step_; }
  const std::vector<std::string>& examples() const { return examples_; }

 private:
  int64_t step_;
  std::vector<std::string> examples_;
};

// Whether a parameter is trained: its learning rate multiplier is not 0.
MXTRAIN_API bool TrainsParameter(const Symbol& symbol, const std::string& name,
                                 const LrPatterns& lr_mult = {});

// Request for binding a net for training to a batch's arrays: for the first worker's executor, on
// its part of the batch. `net`: options.symbol, or OnBatchesOf it.
MXTRAIN_API Executor::BindRequest TrainingRequest(const TrainOptions& options, const Symbol& net,
                                                  std::span<const DataDesc> arrays);

class MXTRAIN_API Trainer {
 public:
  // `val` may be null. The batch size is the iterators'; both must outlive the trainer. Binds, so
  // shape errors are thrown here.
  Trainer(Runtime& runtime, TrainOptions options, DataIter& train, DataIter* val);
  ~Trainer();

  // Before Run: replaces options.checkpoint_folder.
  void SaveTo(const std::string& folder) { options_.checkpoint_folder = folder; }
  // Before Run: continues from the checkpoint. Positions inside an epoch are counted in examples,
  // so a new batch size must divide them. `extend`: the run was finished and continues for as many
  // epochs and steps again, with a new schedule. Throws kConfig if its arrays do not match the net
  // or the run cannot be continued this way.
  void Resume(const Checkpoint& checkpoint, bool extend = false);
  // Before Run: initial values of parameters and auxiliary states, by name; others keep the
  // initializer's.
  WeightsAccount Begin(const std::map<std::string, NDArray>& weights);

  // `stop`: when it becomes non-zero, the current step is finished and saved, and Run returns. 2
  // requests a save without stopping; the trainer resets it to 0. Throws DivergedError if the loss
  // is non-finite; result() then tells how far the run got.
  TrainResult Run(TrainListener& listener, std::atomic<int>* stop = nullptr);
  const TrainResult& result() const { return result_; }  // of the last Run that ended or diverged

  // One batch: forward, backward, losses and metrics, and with the last batch of a step the
  // updates; waits until at most one older batch is in flight. This is Run without reports; for
  // benchmarks and custom loops.
  void Step(const DataBatch& batch);
  // Time spent in Step so far pushing work to the engine, without the wait for the older batch.
  double push_seconds() const { return push_seconds_; }

  // Instead of Run: the first step and one validation batch, to find errors that Run would throw.
  // Changes parameters; saves nothing.
  void Rehearse();

  Executor& executor() { return *executors_[0]; }
  const BestEpochs& best() const { return best_; }
  int64_t total_steps() const { return total_steps_; }
  // Whether the run is complete: its epochs or steps are done, or it ended early, and the last
  // epoch was ended. False for a stopped or killed run.
  bool finished() const {
    return (state_.step >= total_steps_ || state_.ended_early) && !state_.open;
  }

 private:
  struct Clock;
  int num_workers() const { return static_cast<int>(options_.workers.size()); }
  Context first_device() const { return options_.workers[0]; }
  void CheckWorkers() const;
  void CheckLabels() const;
  void BindExecutors();
  void MeasureAndBind();
  void InitializeParameters();
  void MakeUpdater();
  void MakeLossScale();
  void LookAtLossScale(TrainListener& listener);
  int PriorityOf(int key) const;
  void PlanSteps();
  void FindPlace(int64_t batch_size);
  int64_t Position() const;
  double LearningRate(int64_t position) const {
    return updater_->optimizer().base_lr() * schedule_->Factor(position);
  }
  int64_t ExamplesPerStep() const { return train_.batch_size() * options_.grad_accum; }
  // Compares fingerprints. Warns unless the run is extended, which is often done because of new
  // data.
  void TellOfOtherData(const char* what, const std::string& then, const std::string& now,
                       bool extend) const;
  void RestoreAverages(const Checkpoint& checkpoint);
  void Extend(int64_t planned_steps);
  void SumGradients(const DataBatch& batch);
  void UpdateParameters();
  void MarkEnd(bool updated);
  void CollectBatch(const DataBatch& batch);
  struct Outcome;
  void TakeIn(const Outcome& outcome);
  [[noreturn]] void ThrowDiverged(int64_t step, const std::vector<int64_t>& index);
  RunStart Describe() const;
  Checkpoint Snapshot() const;
  void Save(const std::vector<std::string>& names, TrainListener& listener);
  RunEnd RunEpochs(TrainListener& listener, std::atomic<int>* stop, Clock* clock);
  void Summarize(RunEnd end, const Clock& clock);
  void TrainEpoch(TrainListener& listener, std::atomic<int>* stop, Clock* clock);
  void ReportStep(TrainListener& listener, Clock* clock);
  void WarnOfTimeLimit(TrainListener& listener, double seconds, double steps_per_second);
  void SaveWhereDue(TrainListener& listener, std::atomic<int>* stop, Clock* clock);
  std::vector<std::pair<double, double>> RatesOfEpoch() const;
  void EndEpoch(TrainListener& listener, std::atomic<int>* stop, Clock* clock);
  bool ReportIsDue(const Clock& clock) const;
  bool OutOfTime(const Clock& clock) const;
  bool ReachesTarget(std::optional<double> value) const;  // of the first of best_metrics

  Runtime& runtime_;
  TrainOptions options_;
  DataIter& train_;
  DataIter* val_;
  std::vector<std::unique_ptr<Executor>> executors_;  // one per worker
  std::unique_ptr<Evaluation> evaluation_;            // on the parameters of the first
  std::unique_ptr<KVStore> kvstore_;
  std::unique_ptr<OptimizerUpdater> updater_;
  std::optional<LossScale> loss_scale_;  // of training in float16
  LossScaleState seen_loss_scale_;       // as last reported to the listener
  // By key of the store, in the order of the net; arrays per worker.
  struct Learned {
    std::string name;
    std::vector<NDArray> grads, weights;
  };
  std::vector<Learned> learned_;
  std::vector<KVStore::KeySums> sums_of_;  // [key]: gradients of this step, summed over workers
  std::unique_ptr<LrSchedule> schedule_;
  std::unique_ptr<WeightAverage> average_;  // null: none is kept
  EpochScores scores_;
  LossReport::Sums reported_;  // sums at the last reported step or the start of the epoch
  BestEpochs best_;
  std::optional<Patience> early_stop_;
  TrainState state_;
  TrainResult result_;
  int64_t steps_per_epoch_ = 0, total_steps_ = 0;
  double rescale_grad_ = 1;
  std::string rescale_reason_;
  engine::VarHandle sums_ = nullptr;  // orders access to scores_ and diverged_
  std::optional<DivergedError>
      diverged_;  // thrown by a step in flight; a wait rethrows it as an engine Error
  bool warned_of_limit_ = false;
  int64_t saved_step_ = -1;  // step of this process's last save
  int64_t batches_ = 0;      // in this process
  double push_seconds_ = 0;
  int64_t summed_batches_ = 0;  // since the last update
  std::vector<engine::VarHandle>
      ends_;  // per worker: on a GPU mutated after everything a batch computes there
  engine::VarHandle ended_ = nullptr;  // mutated when the host knows that a batch is done
  std::vector<engine::VarHandle>
      batch_marks_;  // two, alternating: mutated by the last function of a batch
  DataWait data_wait_;

  // Scratch of a step, kept to avoid allocations.
  std::optional<InputOrder> input_order_;
  std::vector<std::string> label_names_;
  std::vector<NDArray> inputs_, part_;
  std::vector<engine::VarHandle> reads_, writes_, computed_last_;
  // A batch whose losses and metrics are still to be added.
  struct Outcome {
    std::vector<NDArray> outputs;  // of each worker in turn, readable by the host
    std::vector<NDArray> labels;
    std::vector<int64_t> index;
    int64_t count = 0, step = 0;
    void Clear() { outputs.clear(), labels.clear(); }
  };
  Recycler<Outcome> outcomes_;
  // Scratch of that function, guarded by sums_.
  std::vector<TBlob> output_blobs_;
  std::map<std::string, TBlob> label_blobs_;
};

}  // namespace mxtrain
