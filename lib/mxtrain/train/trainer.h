#pragma once
// The training loop: batches into executors, gradients through the KVStore to the optimizer, evaluation after each epoch, checkpoints.
//
// A run is a pure function of its options, the data and the number of threads: killed at any point and resumed from its checkpoint it ends in the
// very bits of an unbroken run.
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

// Something that a factory makes.
struct NamedSpec {
  std::string name;
  Kwargs params;
};

// How often to save; zero: not by this unit.
struct SavePolicy {
  int64_t every_epochs = 1, every_steps = 0;
  double every_seconds = 0;
  int keep = 3;  // files epoch-*; 0: all
};

// When a run ends before its epochs, by the first of best_metrics: after `patience` epochs in which it was no better than its best by more than
// min_delta (zero: never), or after one in which it has reached `target`.
struct EarlyStop {
  int64_t patience = 0;
  double min_delta = 0;
  std::optional<double> target = std::nullopt;
};

struct TrainOptions {
  Symbol symbol;
  // Carried into checkpoints; symbol_json, inputs, labels and batch_size are filled by the trainer. Its kernel_choices hold before anything is
  // bound: those of the checkpoint that is resumed.
  ModelInfo model;
  // Where the workers compute: each has an executor and a part of every batch, which must divide. One device may have several. Evaluation and
  // checkpoints take the first.
  std::vector<Context> workers{Context::cpu()};
  ComputeModes modes;  // of training and evaluation
  bool measure_kernels =
      true;  // those that a library offers for one thing, where the device's backend has such choices; not with modes.deterministic
  executor::MemoryBudget memory_budget;  // on a device, of its workers together
  int64_t epochs = 1;
  int64_t max_steps = 0;             // 0: no limit
  double time_limit_seconds = 0;     // of one Run; 0: no limit
  int64_t grad_accum = 1;            // batches in a step: their gradients are summed, as if they were one large batch
  NamedSpec optimizer{"sgd", {}};    // its `learning_rate` and `wd` are the base values
  NamedSpec lr_schedule{"constant", {}};
  LrPatterns lr_mult;                // by patterns on names of parameters; 0 freezes
  NamedSpec initializer{"xavier", {}};    // of weights
  std::vector<std::pair<std::string, NamedSpec>> initializers;  // by patterns on names of parameters; the last that matches decides
  std::vector<MetricSpec> metrics;
  std::vector<std::string> best_metrics;  // a checkpoint each, `best` and best-METRIC; none: the first metric; "loss" is legal
  EarlyStop early_stop;
  std::optional<double> average_decay;    // of weight averages (weight_average.h), which evaluation uses
  std::optional<double> clip_norm;   // of all gradients together, after scaling by 1 / batch
  std::string kvstore = "local";     // or "device": a GPU for each worker
  CommunicatorFactory new_communicator;  // of `device`; empty: NewGpuCommunicator
  SavePolicy save;
  std::string checkpoint_folder;     // "": nothing is saved
  int64_t report_steps = 0;          // steps from one OnStep event to the next; 0: by time
  double report_seconds = 0.2;       // least time between two of them
};

// What ended a run: its epochs or steps, the flag, EarlyStop's patience, time_limit_seconds, EarlyStop's target, DivergedError.
enum class RunEnd { kComplete, kStopped, kNoImprovement, kTimeLimit, kTarget, kDiverged };

struct TrainResult {
  int64_t epochs = 0, steps = 0;
  int64_t total_steps = 0;           // that the run was to make; its schedule spans them
  double lr = 0, last_lr = 0;        // learning rate of the step that was made last, and of the last that the run was to make
  std::vector<BestValue> best;       // of each of best_metrics
  bool higher_is_better = false;     // of the first
  NamedValues last;                  // validation values of the last epoch, or training values without validation data
  double images_per_second = 0;      // training only, without the first 20 batches of this process
  double wait_share = 0;             // part of that time in which training waited for data (data_wait.h)
  RunEnd end = RunEnd::kComplete;
};

// The loss was not finite, or gradients overflow in float16 under every scale. `step` counts from 1; `examples` are those of its batch, by name;
// none where it was the gradients, of that step or of one shortly before.
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

// Whether a parameter learns: the multiplier of its learning rate is not 0.
MXTRAIN_API bool TrainsParameter(const Symbol& symbol, const std::string& name, const LrPatterns& lr_mult = {});

// To bind a net for training to the arrays of a batch: one of its workers' executors, the first, on its part of the batch. `net`:
// options.symbol, or what OnBatchesOf makes of it.
MXTRAIN_API Executor::BindRequest TrainingRequest(const TrainOptions& options, const Symbol& net, std::span<const DataDesc> arrays);

class MXTRAIN_API Trainer {
 public:
  // `val` may be null. The iterators' batch size counts; both outlive the trainer. Binds, so errors of shapes come from here.
  Trainer(Runtime& runtime, TrainOptions options, DataIter& train, DataIter* val);
  ~Trainer();

  // Before Run: where checkpoints go, in place of options.checkpoint_folder.
  void SaveTo(const std::string& folder) { options_.checkpoint_folder = folder; }
  // Before Run: goes on where the checkpoint stands; inside an epoch its place is counted in examples, so another batch size must divide
  // them. `extend`: it was finished, and goes on for as many epochs and steps again, the schedule anew. Throws kConfig when its arrays do not
  // fit the net, or it cannot be gone on with so.
  void Resume(const Checkpoint& checkpoint, bool extend = false);
  // Before Run: first values of parameters and auxiliary states, by name; what has none keeps that of the initializer.
  WeightsAccount Begin(const std::map<std::string, NDArray>& weights);

  // `stop`: when it becomes non-zero the step under way is finished, saved, and Run returns. 2 asks for a save without stopping, and the
  // trainer sets it back to 0. Throws DivergedError when the loss is not finite; result() then says how far the run came.
  TrainResult Run(TrainListener& listener, std::atomic<int>* stop = nullptr);
  const TrainResult& result() const { return result_; }  // of the last Run that ended, or diverged

  // One batch: forward, backward, sums of losses and metrics, and with the last batch of a step the updates; waits until at most one older
  // batch is under way. What Run does between its reports; for benchmarks and loops of one's own.
  void Step(const DataBatch& batch);
  // What the thread that calls Step has spent there so far giving work to the engine; the wait for the older batch does not count.
  double push_seconds() const { return push_seconds_; }

  // In place of Run: the first step and one batch of the validation, as Run makes them, to throw what Run would throw. Parameters have moved
  // afterwards; nothing is saved.
  void Rehearse();

  Executor& executor() { return *executors_[0]; }
  const BestEpochs& best() const { return best_; }
  int64_t total_steps() const { return total_steps_; }
  // Nothing is left to do: the run has made its epochs or steps, or ended early, and ended the last epoch. One that was stopped or killed in
  // between has not.
  bool finished() const { return (state_.step >= total_steps_ || state_.ended_early) && !state_.open; }

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
  double LearningRate(int64_t position) const { return updater_->optimizer().base_lr() * schedule_->Factor(position); }
  int64_t ExamplesPerStep() const { return train_.batch_size() * options_.grad_accum; }
  // Of fingerprints. A warning, but where a run is extended: new data are often the reason for that.
  void TellOfOtherData(const char* what, const std::string& then, const std::string& now, bool extend) const;
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
  std::optional<LossScale> loss_scale_;               // of training in float16
  LossScaleState seen_loss_scale_;                    // what the listener knows of it
  // By key of the store, in the order of the net; arrays of each worker.
  struct Learned {
    std::string name;
    std::vector<NDArray> grads, weights;
  };
  std::vector<Learned> learned_;
  std::vector<KVStore::KeySums> sums_of_;             // [key]: gradients of this step, summed over workers
  std::unique_ptr<LrSchedule> schedule_;
  std::unique_ptr<WeightAverage> average_;            // null: none is kept
  EpochScores scores_;
  LossReport::Sums reported_;  // those of the losses when a step was reported last, or the epoch was entered
  BestEpochs best_;
  std::optional<Patience> early_stop_;
  TrainState state_;
  TrainResult result_;
  int64_t steps_per_epoch_ = 0, total_steps_ = 0;
  double rescale_grad_ = 1;
  std::string rescale_reason_;
  engine::VarHandle sums_ = nullptr;                  // stands for scores_ and diverged_
  std::optional<DivergedError> diverged_;             // what a step in flight threw; a wait gives it back as an Error of the engine
  bool warned_of_limit_ = false;
  int64_t saved_step_ = -1;                           // where the last save of this process stands
  int64_t batches_ = 0;                               // that this process was given
  double push_seconds_ = 0;
  int64_t summed_batches_ = 0;                        // since the last update
  std::vector<engine::VarHandle> ends_;               // of each worker: on a GPU mutated behind all that a batch computes there
  engine::VarHandle ended_ = nullptr;                 // mutated when the host knows that a batch has been computed
  std::vector<engine::VarHandle> batch_marks_;        // two: mutated by the last function of every other batch
  DataWait data_wait_;

  // What a step needs beside its batches, kept so that the next one allocates nothing.
  std::optional<InputOrder> input_order_;
  std::vector<std::string> label_names_;
  std::vector<NDArray> inputs_, part_;
  std::vector<engine::VarHandle> reads_, writes_, computed_last_;
  // A batch whose losses and metrics are to be taken in.
  struct Outcome {
    std::vector<NDArray> outputs;  // of each worker in turn, where the host can read them
    std::vector<NDArray> labels;
    std::vector<int64_t> index;
    int64_t count = 0, step = 0;
    void Clear() { outputs.clear(), labels.clear(); }
  };
  Recycler<Outcome> outcomes_;
  // Of that function, guarded by sums_.
  std::vector<TBlob> output_blobs_;
  std::map<std::string, TBlob> label_blobs_;
};

}  // namespace mxtrain
