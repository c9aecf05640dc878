// SPDX-License-Identifier: Apache-2.0
#pragma once
// Batches of a configuration's data sets: the pipelines of training, validation and checks, with
// transforms, mixing and normalization, in the shapes that the net declares.
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "app/session/data_sets.h"
#include "app/session/session_view.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/multi_scale.h"
#include "mxtrain/io/pipeline.h"
#include "mxtrain/io/pixel_statistics.h"
#include "mxtrain/io/tiles.h"

namespace mxtrain::session {

// The runtime and the data sets must outlive it; batches are for the device `ctx`.
class DataIters {
 public:
  DataIters(const SessionView& session, Runtime& runtime, Context ctx, DataSets& sets)
      : session_(session), runtime_(runtime), ctx_(ctx), sets_(sets) {}

  // Of the data of a distributed run: the part of one rank, in all iterators but Whole and Once.
  void TakePart(int rank, int ranks) {
    rank_ = rank;
    ranks_ = ranks;
  }

  // Of a run that is continued: the epoch in which the configuration's first one begins.
  void BeginAt(int64_t first_epoch) { first_epoch_ = first_epoch; }
  // The epoch from which on something is off in the last `off_epochs` of the run.
  int64_t EpochOfEnd(int64_t off_epochs) const;

  int64_t BatchOfRank() const { return GlobalBatch() / ranks_; }

  // Each throws what the source and the pipeline throw, with the place in the configuration, and
  // DiagnosticError if the data does not fit the net.
  std::unique_ptr<DataIter> Training();
  std::unique_ptr<DataIter> Validation();  // null without validation data
  // One pass over all records, none skipped or replaced, images fully decoded; with the transforms
  // of training or validation.
  std::unique_ptr<DataIter> Whole(bool validation);
  // One pass over all records in the order of the source, none skipped or replaced, prepared as in
  // training or validation.
  // `examples`: those records, or some of them.
  std::unique_ptr<DataIter> Once(bool validation, std::shared_ptr<const io::Source> examples) {
    return Make(validation, Pass::kOnce, std::move(examples));
  }
  // All that decides what Once makes of a record, JSON. After Training.
  std::string Preparation(bool validation) const;
  // As Training and Validation, of examples that have other data: features of these records.
  std::unique_ptr<DataIter> Over(bool validation, std::shared_ptr<const io::Source> features);
  // Throws DiagnosticError, naming what is random, unless each image is the same in every epoch.
  void RequireSameEpochs() const;

  // The tiles that images are read in; nothing: whole. Throws DiagnosticError if they are out of
  // range.
  std::optional<io::TileOptions> Tiles() const;

  // The image transforms; `normalize: auto` has its values once an iterator of such data was made.
  std::vector<io::TransformSpec> Transforms(bool validation) const;

 private:
  enum class Pass { kTraining, kEvaluation, kWhole, kOnce };
  const config::Config& config() const { return session_.config(); }
  const config::SourceConfig& ConfigOf(bool validation) const {
    return validation ? config().data.val : config().data.train;
  }
  // `examples`: null: all of the set.
  std::unique_ptr<DataIter> Make(bool validation, Pass pass,
                                 std::shared_ptr<const io::Source> examples = nullptr);
  std::shared_ptr<const io::Source> Examples(bool validation);
  Kwargs ParamsOf(const io::Source& source, const config::SourceConfig& c, Pass pass) const;
  // As io::NewPipeline: of examples in buckets, if data.bucket_lengths names any, and in training
  // of several sizes, if train.multi_scale does.
  std::unique_ptr<DataIter> MakeIter(std::shared_ptr<const io::Source> source,
                                     const io::PipelineParam& param, bool validation, Pass pass);
  std::unique_ptr<DataIter> MakeBucketed(std::shared_ptr<const io::Source> source,
                                         const io::PipelineParam& param, bool validation);
  // Rising, the last that of the net's input.
  std::vector<int64_t> BucketLengths(const io::Source& source) const;
  [[noreturn]] void RefuseBuckets(const std::string& text, const std::string& help) const;
  std::unique_ptr<DataIter> MakeScaled(const std::shared_ptr<const io::Source>& source,
                                       const io::PipelineParam& param,
                                       const std::vector<io::ImageSize>& sizes);
  [[noreturn]] void RefuseScales(const std::string& text, const std::string& help) const;
  void AddMixing(Kwargs* pipeline) const;
  void AddSoftLabels(Kwargs* pipeline) const;
  void AddMosaic(Kwargs* pipeline) const;
  int64_t GlobalBatch() const;  // of all ranks
  void CheckBatch(const io::Source& source, const config::SourceConfig& c) const;
  void Measure(bool validation);
  std::vector<io::TransformSpec> ChainOf(bool validation) const;

  const SessionView session_;
  Runtime& runtime_;
  const Context ctx_;
  DataSets& sets_;
  int rank_ = 0, ranks_ = 1;
  int64_t first_epoch_ = 0;
  std::optional<io::PixelStatistics> statistics_;  // of the training set, once they are wanted
  std::map<bool, std::shared_ptr<const io::Source>> tiled_;  // by whether it is for validation
};

}  // namespace mxtrain::session
