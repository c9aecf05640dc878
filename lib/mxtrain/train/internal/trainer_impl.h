// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a Trainer consists of. trainer.cc makes, resumes and saves it; trainer_run.cc is the loop.
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "mxtrain/train/internal/batches_in_flight.h"
#include "mxtrain/train/internal/best_epochs.h"
#include "mxtrain/train/internal/bound_net.h"
#include "mxtrain/train/internal/feature_cache.h"
#include "mxtrain/train/internal/parameter_updates.h"
#include "mxtrain/train/internal/ranks.h"
#include "mxtrain/train/internal/run_progress.h"
#include "mxtrain/train/internal/step_watch.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

// The optimizer's factor on the sums of gradients, and why.
struct GradientScale {
  double factor = 1;
  std::string reason;
};

// Members stand in the order in which they depend on each other: the last is destroyed first, and
// waits for the batches that use the others.
struct Trainer::Impl {
  class Loop;  // one Run

  Impl(Runtime& on, TrainOptions given, DataIter& training, DataIter* validation);

  // Binds for a run in which options.freeze is in force, or no longer; arrays are as initialized.
  // `unfrozen_step`: as in ParameterUpdates.
  void Bind(bool frozen, std::optional<int64_t> unfrozen_step = std::nullopt);
  void Watch();
  // Between two epochs: what was frozen learns from here on.
  void Unfreeze();
  void BindUnfrozen();
  bool UnfreezesNow() const {
    return frozen && options.freeze.Unfreezes() &&
           progress.state().epoch >= options.freeze.epochs && !progress.all_steps_made();
  }
  DataIter& TrainData() const { return features ? features->train() : train; }

  WeightsAccount Begin(const std::map<std::string, NDArray>& weights, const BaseFile& file);
  void RequireSameBase(const ModelInfo& before) const;
  void Resume(const Checkpoint& checkpoint, bool extend);
  TrainResult Run(TrainListener& listener, std::atomic<int>* stop);
  void Step(const DataBatch& batch);
  void Rehearse();
  void EndAlone(const std::exception_ptr& error, bool lost);
  // Of dist_async (kvstore/rounds.h).
  void BeginRound();
  void EndRound();
  // For what this rank has pushed, not for the others.
  void WaitForPushed();

  RunStart Describe() const;
  Checkpoint Snapshot(ParameterUpdates::OfRanks of_ranks) const;
  void Save(const std::vector<std::string>& names, TrainListener& listener);
  // Warns of data other than those of the checkpoint, unless the run is extended, which is often
  // done because of new data.
  void CompareData(bool validates, const std::string& then, const std::string& now,
                   bool extend) const;
  double LearningRate(int64_t position) const {
    return updates->base_lr() * progress.schedule().Factor(position);
  }

  Runtime& runtime;
  TrainOptions options;
  DataIter& train;
  DataIter* const val;
  const Symbol symbol;       // of the options, as given
  const LrPatterns lr_mult;  // likewise

  Ranks ranks;
  EpochScores scores;  // of this rank's examples
  BestEpochs best;
  RunProgress progress;
  const GradientScale rescale_grad;
  TrainResult result;
  int64_t batches_of_step = 0;   // pushed since the last update
  double push_seconds = 0;       // in Step
  int64_t saved_step = -1;       // step of this process's last save
  bool extended = false;         // a finished run that goes on
  bool warned_of_limit = false;  // Loop::WarnOfTimeLimit

  std::set<std::string> of_base;           // parameters that are not in checkpoints (LoRA)
  bool frozen = false;                     // whether options.freeze is in force
  std::unique_ptr<FeatureCache> features;  // of a net whose first layers are computed once
  std::unique_ptr<BoundNet> net;
  std::unique_ptr<StepWatch> watch;  // null if nothing is watched
  std::unique_ptr<ParameterUpdates> updates;
  std::unique_ptr<BatchesInFlight> batches;
};

}  // namespace mxtrain
