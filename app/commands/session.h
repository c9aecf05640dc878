// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by commands that work on a configuration: plug-ins, runtime, the checked configuration,
// its net and its data.
#include <memory>
#include <string>
#include <vector>

#include "app/commands/batch_fit.h"
#include "app/commands/command.h"
#include "app/config/load.h"
#include "app/config/net.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/pixel_statistics.h"
#include "mxtrain/ndarray/runtime.h"
#include "mxtrain/train/class_weights.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain::commands {

// A registry with the built-in operators and the plug-ins of flags and configuration.
std::shared_ptr<OperatorRegistry> MakeRegistry(const std::vector<std::string>& plugins,
                                               DeviceType device = DeviceType::kCPU);
// The public names; those with a leading underscore are internal, or kept for MXNet's files.
std::vector<std::string> PublicOperators(const OperatorRegistry& registry);
// Reports which device `--device auto` is, if it is a GPU. Throws kDevice for a missing device.
std::unique_ptr<Runtime> MakeRuntime(const CommonFlags& flags, uint64_t seed,
                                     std::shared_ptr<const OperatorRegistry> registry,
                                     report::Console& console);

// A configuration, read and checked as far as possible without data. Throws DiagnosticError with
// all errors.
class Session {
 public:
  Session(const ConfigArguments& arguments, const CommonFlags& flags, report::Console& console);

  // train.epochs counts the epochs of the run's last segment. If that begins after so many epochs
  // and the configuration counts those too: subtracts them. Call before BuildNet.
  void CountEpochsFrom(int64_t first_epoch);
  // Builds the net; `classes` is called only if the net uses ${classes}. Checks shapes for one
  // batch. Resolves `data.batch_size: auto`: to `resumed_batch`, that of the resumed run, if it is
  // not 0.
  void BuildNet(int64_t resumed_batch = 0);
  // The training or validation records, opened once; null if the configuration names none.
  std::shared_ptr<const io::Source> OpenSource(bool validation);
  std::unique_ptr<DataIter> TrainIter();
  // The records of the validation data, or of the training data if there is none.
  std::shared_ptr<const io::Source> EvaluationSource();
  std::unique_ptr<DataIter> ValIter();  // null without validation data
  // One pass over all records, none skipped or replaced, images fully decoded; with the transforms
  // of training or validation.
  std::unique_ptr<DataIter> WholeIter(bool validation);

  const config::Config& config() const { return loaded_.config; }
  const config::LoadedConfig& loaded() const { return loaded_; }
  const config::Net& net() const { return net_; }
  config::Diagnostics& diagnostics() { return diagnostics_; }
  Runtime& runtime() { return *runtime_; }
  Context ctx() const { return devices_[0]; }  // that of validation
  std::string DeviceNames() const;             // "gpu(0), gpu(1)"
  const std::vector<std::string>& class_names() const { return class_names_; }

  std::vector<MetricSpec> Metrics() const;
  std::vector<io::TransformSpec> TrainTransforms() const {
    return Transforms(config().data.train);
  }  // measured by TrainIter
  // Options of a training run from configuration and flags.
  TrainOptions MakeTrainOptions() const;
  KeptStates StatesOfTraining() const;
  // A request to bind the net for one batch of synthetic data: `plan`, `bench`.
  // As `train` binds the net: one of its workers for training, or for evaluation.
  executor::BindRequest MakeBindRequest(bool training) const;

 private:
  enum class Pass { kTraining, kEvaluation, kWhole };
  std::vector<Context> Workers() const;  // of a training run
  TrainOptions BindingOptions() const;
  std::unique_ptr<DataIter> MakeIter(std::shared_ptr<const io::Source> source,
                                     const config::SourceConfig& c, Pass pass);
  void FollowWeights();
  void CheckInputOrder();
  void CheckBatch(const io::Source& source, const config::SourceConfig& c);
  void CheckPatterns();
  void ChooseMetrics();
  void CheckClassCount();
  void WeighClasses();
  std::vector<double> ClassWeights(const ClassifierHead& head) const;
  void CheckColumns(const config::SourceConfig& c);
  void RequirePath(const config::SourceConfig& c) const;
  std::optional<int64_t> ClassesOfTable() const;
  void CompleteTable();
  void CheckTargets() const;
  std::vector<std::string> Targets() const;
  void ChooseBatch(int64_t resumed_batch);
  // Whether validation data is a part of the training set.
  bool HoldsOut() const {
    return config().data.val.source.empty() &&
           (config().data.val.holdout > 0 || config().data.val.folds > 0);
  }
  const config::SourceConfig& SourceOf(bool validation) const;  // where the examples come from
  Kwargs DataParams(bool validation) const;                     // of io::MakeSource
  void MeasureFor(const config::SourceConfig& c);
  std::vector<io::TransformSpec> ChainOf(const config::SourceConfig& c) const;
  std::vector<io::TransformSpec> Transforms(
      const config::SourceConfig& c) const;  // with measured values
  void AddMixing(Kwargs* pipeline) const;
  std::vector<TShape> ParameterShapes(const std::string& input, const TShape& size) const;
  bool TakesSize(const config::NetInput& input, const TShape& size) const;
  config::Place DeclarationOf(const config::NetInput& input) const;  // of its shape
  void ReportShape(const config::NetInput& input, const TShape& given,
                   const config::SourceConfig& c);
  void CheckIter(const DataIter& iter, const config::SourceConfig& c, Pass pass);

  report::Console& console_;
  const bool deterministic_;
  config::Diagnostics diagnostics_;
  config::LoadedConfig loaded_;
  config::Net net_;
  const std::vector<Context> devices_;  // one, or several GPUs that share every batch
  std::unique_ptr<Runtime> runtime_;
  std::vector<std::string> class_names_;
  std::shared_ptr<const io::Source> train_source_, val_source_;
  std::optional<io::PixelStatistics> statistics_;
  Kwargs table_params_;  // for sources of tables: format and statistics of the training set
};

}  // namespace mxtrain::commands
