// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by commands that work on a configuration: the checked configuration, its net, its data and
// the options of its training. A session opens them in that order, and reports what does not fit;
// each part has its own file (net: key_checks.h and class_checks.h, data: data_sets.h and
// data_iters.h, training: train_options.h).
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/session/batch_fit.h"
#include "app/session/data_iters.h"
#include "app/session/data_sets.h"
#include "app/session/head_tasks.h"
#include "app/session/image_sizes.h"
#include "app/session/open_runtime.h"
#include "app/session/request.h"
#include "app/session/session_view.h"
#include "app/session/train_options.h"
#include "mxtrain/train/feature_cut.h"

namespace mxtrain::session {

// A configuration, read and checked as far as possible without data. Throws DiagnosticError with
// all errors.
class Session {
 public:
  Session(const ConfigFiles& arguments, const ComputeOptions& flags,
          const std::shared_ptr<Log>& log);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // train.epochs counts the epochs of the run's last segment. If that begins after so many epochs
  // and the configuration counts those too: subtracts them. Call before BuildNet.
  void CountEpochsFrom(int64_t first_epoch);
  // The epochs of the configuration follow so many of the run.
  void BeginAt(int64_t first_epoch) { iters_.BeginAt(first_epoch); }
  // With what the run has before them.
  int64_t Epochs() const { return iters_.EpochOfEnd(0); }
  // The held-out examples of a resumed run are drawn as before. `pipeline`: of its checkpoint. Call
  // before BuildNet.
  void KeepFindings(const std::string& pipeline) { sets_.KeepFindings(pipeline); }
  // Builds the net; reads the data only if the net uses ${classes}, or train.class_weights or
  // `data.batch_size: auto` depend on it. Checks shapes for one batch. Resolves `batch_size: auto`:
  // to `resumed_batch`, that of the resumed run, if it is not 0.
  void BuildNet(int64_t resumed_batch = 0);

  // Before the iterators and options: this process trains on its part of the data, in a group.
  // Null: it is alone.
  void JoinRanks(std::shared_ptr<ProcessGroup> group);

  int64_t BatchOfRank() const { return iters_.BatchOfRank(); }

  // The training or validation records, opened once; null if the configuration names none.
  std::shared_ptr<const io::Source> OpenSource(bool validation) { return sets_.Open(validation); }
  // Whether validation data is a part of the training set; the folder of a set's files.
  bool HoldsOut() const { return sets_.HoldsOut(); }
  std::string RootOf(bool validation) const { return sets_.RootOf(validation); }
  // Builds the net. The records of the validation data, or of the training data if there is none.
  std::shared_ptr<const io::Source> EvaluationSource();
  std::unique_ptr<DataIter> TrainIter() { return iters_.Training(); }
  std::unique_ptr<DataIter> ValIter() { return iters_.Validation(); }  // null without such data
  // One pass over all records, none skipped or replaced, images fully decoded; with the transforms
  // of training or validation.
  std::unique_ptr<DataIter> WholeIter(bool validation) { return iters_.Whole(validation); }

  const config::Config& config() const { return loaded_.config; }
  const config::LoadedConfig& loaded() const { return loaded_; }
  const config::Net& net() const { return net_; }
  config::Diagnostics& diagnostics() { return diagnostics_; }
  Runtime& runtime() { return *runtime_; }
  Context ctx() const { return devices_[0]; }  // that of validation
  std::string DeviceNames() const;             // "gpu(0), gpu(1)"
  const std::vector<std::string>& class_names() const { return sets_.class_names(); }

  // The tasks of the heads with labels, with what is known of them once the training set is open.
  std::vector<std::unique_ptr<tasks::Task>> Tasks();

  std::vector<MetricSpec> Metrics() const { return MetricsOf(config().train); }
  // Measured by TrainIter.
  std::vector<io::TransformSpec> TrainTransforms() const { return iters_.Transforms(false); }
  // Options of a training run from configuration and flags.
  TrainOptions MakeTrainOptions() const;
  // With data.cache: features, lets a run compute features once. After TrainIter and ValIter; the
  // session must outlive the run. `folder`: where they are kept for other runs, "": nowhere. Throws
  // DiagnosticError, naming what forbids it, and kUsage for a folder without such features.
  void CacheFeatures(TrainOptions* options, const std::string& folder = "");
  // Instead, for commands that measure steps: layers that are frozen for some epochs learn from the
  // start, and all layers are computed. Says so.
  void MeasureAllLayers(TrainOptions* options) const;
  // With data.cache: features, the net in two parts. Throws DiagnosticError or kConfig, naming what
  // forbids it, if there are no features.
  std::optional<FeatureCut> Features() const;
  // What training runs in each step: the net, or what follows the features. If layers are frozen
  // for some epochs only: of the epochs after them.
  Symbol TrainedNet() const;
  KeptStates StatesOfTraining() const { return StatesOf(config().train); }
  // As `train` binds TrainedNet in one of its workers, or the net for evaluation; for a batch of
  // arrays as the net declares them.
  executor::BindRequest MakeBindRequest(bool training) const;
  // Of training on a batch of this size, without recomputation: of all workers on the first one's
  // device, with the devices of --place.
  MemoryBytes BytesOfTraining(int64_t batch) const;
  // The sizes of training images (train.multi_scale), rising; empty if all have the net's.
  std::vector<io::ImageSize> ImageSizes() const { return session::ImageSizes(config(), net_); }
  // Of the arrays of a batch in training, of the largest images, or of those of `size`.
  std::map<std::string, TShape> ShapesOfTraining(
      int64_t batch, std::optional<io::ImageSize> size = std::nullopt) const;

 private:
  std::optional<FeatureCut> CutOfTraining() const;
  SessionView view() { return {loaded_, net_, diagnostics_, log_}; }
  void ChooseBatch(int64_t resumed_batch);
  BindOptions OptionsOfBinding() const;
  // Adds what depends on the devices.
  void CompleteModes(ComputeModes* modes) const;

  const Logger log_;
  const bool deterministic_, naive_;
  const std::vector<Context> devices_;           // one, or several GPUs that share every batch
  const std::map<std::string, Context> places_;  // of --place
  config::Diagnostics diagnostics_;
  config::LoadedConfig loaded_;
  config::Net net_;
  const std::unique_ptr<Runtime> runtime_;
  std::shared_ptr<ProcessGroup> group_;
  DataSets sets_;
  DataIters iters_;
};

}  // namespace mxtrain::session
