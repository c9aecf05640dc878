// SPDX-License-Identifier: Apache-2.0
#pragma once
// The features of a run's examples (train/feature_cut.h), computed once before the first step: the
// parameters of the trunk, what computes with them, and iterators over the results, which deliver
// the examples in the order of the run's own. Used by the training thread.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/train/feature_cut.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

class FeatureFile;
class FeatureSource;  // the results, as a data source

class FeatureCache {
 public:
  // Binds the trunk of options.symbol. `train` and `val` (may be null): the run's own iterators.
  // Options and iterators must outlive it. Throws kConfig if the net has no features or the options
  // do not allow it, kMemory if they take more than options.features->limit_bytes.
  FeatureCache(Runtime& runtime, const TrainOptions& options, const DataIter& train,
               const DataIter* val);
  ~FeatureCache();

  const Symbol& head() const { return cut_.head; }
  DataIter& train() { return *train_; }
  DataIter* val() { return val_.get(); }
  // Of the trunk; they must not change once the features are computed.
  const std::map<std::string, NDArray>& args() const { return args_; }
  const std::map<std::string, NDArray>& auxs() const { return auxs_; }

  // Computes all features, if they are not yet; nothing may be running. Those that another run has
  // left in FeatureOptions::folder are taken from there, and the others added; where that fails,
  // there is a warning. `stop`: checked between batches; returns false if it was true. Throws what
  // the iterators throw, and kConfig if features depend on the other examples of a batch.
  bool Fill(const std::function<bool()>& stop);
  // Instead of Fill: those of the first batch of training, as a batch of train(), and of the first
  // batch of validation.
  DataBatch Rehearse();

 private:
  struct Set;
  int64_t Bytes() const;  // of all features and labels
  Set MakeSet(bool validation) const;
  bool Complete(bool validation, const std::function<bool()>& stop);
  static void TakeFrom(FeatureFile* file, const std::vector<std::optional<uint64_t>>& identities,
                       Set* set);
  bool FillFrom(Set* set, const std::function<bool()>& stop, int64_t most_batches);
  std::vector<NDArray> Run(Set* set, const DataBatch& batch);
  std::vector<NDArray> InputsOf(const Set& set, const DataBatch& batch) const;  // cut_.inputs
  bool CheckIndependence(Set* set, const DataBatch& batch);
  void TellOfPlaces() const;
  void TellOfLayers(int64_t images, const char* set) const;
  void Tell(double seconds) const;

  Runtime& runtime_;
  const TrainOptions& options_;
  FeatureCut cut_;
  std::unique_ptr<Set> training_, validation_;  // of the data; null once filled, or without it
  std::shared_ptr<FeatureSource> train_source_, val_source_;
  std::unique_ptr<DataIter> train_, val_;
  std::map<std::string, NDArray> args_, auxs_;
  int64_t computed_ = 0, found_ = 0;  // images whose features Fill computed, and found in files
};

}  // namespace mxtrain
