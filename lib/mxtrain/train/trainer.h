// SPDX-License-Identifier: Apache-2.0
#pragma once
// The training loop: batches into executors, gradients through the KVStore to the optimizer,
// evaluation after each epoch, checkpoints.
//
// A run is a pure function of its options, the data and the number of threads: killed at any point
// and resumed from its checkpoint, it gives the same bits as an uninterrupted run.
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/process_group.h"
#include "mxtrain/executor/executor.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/source.h"
#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/train/bind_request.h"
#include "mxtrain/train/checkpoint.h"
#include "mxtrain/train/evaluation.h"
#include "mxtrain/train/events.h"
#include "mxtrain/train/watch.h"
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
// best value by more than min_delta, nor equalled it with a lower loss (zero: never), or after an
// epoch that reached `target`.
struct EarlyStop {
  int64_t patience = 0;
  double min_delta = 0;
  std::optional<double> target = std::nullopt;
};

// Parameters that do not learn in the first epochs of a run, or in none.
struct FreezeOptions {
  std::vector<std::string> patterns;  // of their names (base/glob.h)
  int64_t epochs = 0;                 // 0: they never learn
  // Batch norms whose gamma and beta are frozen normalize by their moving averages meanwhile, and
  // do not change them.
  bool fix_statistics = false;
  // The part of the steps after `epochs` in which their learning rate rises from 0 to the
  // schedule's; 0: it is that at once.
  double warmup = 0;

  bool Unfreezes() const { return !patterns.empty() && epochs > 0; }
};

// The outputs of layers before which nothing learns are computed once, before the first step, and
// kept in memory. Only for data without random transforms and mixing, one worker, and float32.
struct FeatureOptions {
  std::shared_ptr<const io::Source> train, val;  // val: if the run has validation data
  int64_t limit_bytes = 0;                       // 0: half of the free memory
  // One pass over these examples of a data set in their order, nothing skipped, in batches of the
  // run.
  std::function<std::unique_ptr<DataIter>(bool validation, std::shared_ptr<const io::Source>)>
      whole;
  // The run's own iterator, over examples with these data.
  std::function<std::unique_ptr<DataIter>(bool validation, std::shared_ptr<const io::Source>)> over;
  // Where features are kept for other runs (feature_file.h); "": nowhere.
  std::string folder = {};
  // How examples of a data set become what the trunk reads: equal records that are prepared equally
  // are equal inputs. For `folder`.
  std::function<std::string(bool validation)> preparation = {};
};

struct TrainOptions : BindOptions {
  Symbol symbol;
  // Stored in checkpoints; symbol_json, inputs, labels and batch_size are set by the trainer.
  // kernel_choices, from the resumed checkpoint, take effect before binding. With model.lora
  // `symbol` has the factors, all that learns is in checkpoints, and the rest comes from Begin.
  ModelInfo model;
  Symbol without_factors;  // with model.lora: the net of the model
  // Chooses among a library's kernels by measuring, if the backend has choices; not with
  // modes.deterministic.
  bool measure_kernels = true;
  int64_t epochs = 1;
  int64_t max_steps = 0;           // 0: no limit
  double time_limit_seconds = 0;   // of one Run; 0: no limit
  NamedSpec optimizer{"sgd", {}};  // its `learning_rate` and `wd` are the base values
  NamedSpec lr_schedule{"constant", {}};
  NamedSpec initializer{"xavier", {}};  // of weights
  // By parameter name pattern; the last match wins.
  std::vector<std::pair<std::string, NamedSpec>> initializers;
  // Beside lr_mult, over which it takes precedence while it lasts.
  FreezeOptions freeze;
  std::optional<FeatureOptions> features;
  std::vector<MetricSpec> metrics;
  // One checkpoint each, `best` and best-METRIC; none: the first metric; may be "loss".
  std::vector<std::string> best_metrics;
  EarlyStop early_stop;
  // Of exponential moving averages of weights and auxiliary states, which evaluation uses; none:
  // the weights.
  std::optional<double> average_decay;
  std::optional<double> clip_norm;  // global norm of gradients, after scaling by 1 / batch
  // Or "device": one GPU per worker; "dist_sync"; "dist_device_sync": as many GPUs on each rank;
  // "dist_async".
  std::string kvstore = "local";
  CommunicatorFactory new_communicator;  // between GPUs; empty: NewGpuCommunicator
  // Of the stores `dist_*`: all ranks train with the same options, and iterators whose batches are
  // their parts of the whole (io::PipelineParam::part_index). Rank 0 saves; the others do not.
  std::shared_ptr<ProcessGroup> group;
  DistOptions dist;
  SavePolicy save;
  std::string checkpoint_folder;  // "": nothing is saved
  int64_t report_steps = 0;       // steps between OnStep events; 0: by time
  double report_seconds = 0.2;    // minimum time between OnStep events
  // Throws kConfig for a pattern without a match; warns instead if parameters learn later.
  WatchOptions watch;
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
  bool last_is_finite = true;  // its loss
  // Of the time in training: without the process's first 20 batches; of all of a brief run, which
  // has fewer than 50.
  double images_per_second = 0;
  double wait_share = 0;  // fraction of it without a batch to compute: the next was not ready
  int64_t timed_batches = 0;
  bool is_brief = false;
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

// Owns the executors, the optimizer's state and what else a run needs. One thread at a time may use
// it; listeners are called on that thread. After an error of Run or Step, continue with a new
// trainer from a checkpoint. The destructor waits for what was pushed.
class MXTRAIN_API Trainer {
 public:
  // `val` may be null. The batch size is the iterators', times the ranks; they and the runtime must
  // outlive the trainer. Binds and initializes, so errors of shapes and names are thrown here:
  // kConfig, or kData for fewer examples than one step takes.
  Trainer(Runtime& runtime, TrainOptions options, DataIter& train, DataIter* val);
  ~Trainer();

  // Before Run: replaces options.checkpoint_folder.
  void SaveTo(const std::string& folder);
  // Parameters, learnt or not, and auxiliary states, by their names.
  std::map<std::string, NDArray> Arrays() const;
  // Before Run: continues from the checkpoint. Positions inside an epoch are counted in examples,
  // so a new batch size must divide them. `extend`: the run was finished and continues for as many
  // epochs and steps again, with a new schedule. Throws kConfig if its arrays do not match the net
  // or its base, or the run cannot be continued this way, kUsage for `extend` of an unfinished run.
  void Resume(const Checkpoint& checkpoint, bool extend = false);
  // Before Run: initial values of parameters and auxiliary states, by name; others keep the
  // initializer's. With options.model.lora they are the base, in `file` (whose checksum is made
  // here), also before Resume. Throws kConfig if it lacks some of what does not learn.
  WeightsAccount Begin(const std::map<std::string, NDArray>& weights, const BaseFile& file = {});

  // `stop`: when it becomes non-zero, the current step is finished and saved, and Run returns. 2
  // requests a save without stopping; the trainer resets it to 0. Any thread or signal handler may
  // set it. Throws DivergedError if the loss is non-finite; result() then tells how far the run
  // got. Errors of iterators, listeners and saves end the run.
  TrainResult Run(TrainListener& listener, std::atomic<int>* stop = nullptr);
  const TrainResult& result() const;  // of the last Run that ended or diverged

  // One batch: forward, backward, losses and metrics, and with the last batch of a step the
  // updates; waits until at most one older batch is in flight, and throws the error of the one
  // before it. This is Run without reports; for benchmarks and custom loops.
  void Step(const DataBatch& batch);
  // Time spent in Step so far pushing work to the engine, without the wait for the older batch.
  double push_seconds() const;

  // Instead of Run: the first step and one validation batch, to find errors that Run would throw.
  // Changes parameters; saves nothing.
  void Rehearse();

  Executor& executor();  // of the first worker
  // The first of best_metrics: its best value so far, and its direction.
  const BestValue& best() const;
  bool HigherIsBetter() const;
  int64_t total_steps() const;
  // Whether the run is complete: its epochs or steps are done, or it ended early, and the last
  // epoch was ended. False for a stopped or killed run.
  bool finished() const;

 private:
  struct Impl;  // internal/trainer_impl.h
  const std::unique_ptr<Impl> impl_;
};

}  // namespace mxtrain
