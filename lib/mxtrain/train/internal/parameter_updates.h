// SPDX-License-Identifier: Apache-2.0
#pragma once
// From the gradients of a step to new parameters: sums over workers, loss scale, clipping, the
// optimizer behind a KVStore, averages of weights. Used by the training thread; calls push work to
// the engine and return, unless they say that they wait.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/kvstore/kvstore.h"
#include "mxtrain/kvstore/loss_scale.h"
#include "mxtrain/kvstore/rounds.h"
#include "mxtrain/train/internal/bound_net.h"
#include "mxtrain/train/internal/weight_average.h"

namespace mxtrain {

class ParameterUpdates {
 public:
  // `rescale_grad`: factor of the optimizer on the sums of gradients. `unfrozen_step`: before it
  // the parameters of options.freeze did not learn; nothing: they were never frozen, or still are.
  // Options and net must outlive it. Throws kConfig for an unknown optimizer or store, and for a
  // schedule that the optimizer does not take.
  ParameterUpdates(Runtime& runtime, const TrainOptions& options, const BoundNet& net,
                   double rescale_grad, std::optional<int64_t> unfrozen_step);
  ~ParameterUpdates();
  ParameterUpdates(const ParameterUpdates&) = delete;  // the store's updater refers to it
  ParameterUpdates& operator=(const ParameterUpdates&) = delete;

  // Before the first batch of a step whose batches add their gradients up.
  void ZeroGradients();
  // After the last batch of step `step` (0 is the first): updates all parameters at this rate.
  // In dist_async those that hold them do so, at rates of their own. `batch`: whose rows were read
  // (BoundNet::rows_read), if there are such parameters.
  void Push(int64_t step, double lr, const DataBatch& batch);
  // Of dist_async, else null. A round begins with BeginRound, after `step` steps of each rank;
  // `rate`: by step, which other threads call.
  Rounds* rounds() const { return kvstore_->rounds(); }
  void BeginRound(int64_t step, std::function<double(int64_t step)> rate);
  // Appends the variables of what a worker computes last in a batch: its weights if the batch was
  // `updated`, else its gradients.
  void AppendLastWritten(size_t worker, bool updated, std::vector<engine::VarHandle>* vars) const;

  // Of the parameters that were frozen before (OptimizerUpdater::SetWarmup).
  void SetWarmup(int64_t updates) { updater_->SetWarmup(updates); }

  double base_lr() const { return updater_->optimizer().base_lr(); }
  int num_devices() const { return updater_->num_devices(); }
  // Of the optimizer, on one of num_devices() devices; by "NAME/0", "NAME/1", ... Sharded states:
  // those of this rank.
  std::map<std::string, NDArray> States() const { return updater_->States(); }
  // What a checkpoint keeps of all ranks, as its maps. All ranks call it and wait; those that do
  // not `keep` it get nothing.
  struct OfRanks {
    std::map<std::string, NDArray> states, residuals;
  };
  OfRanks Gather(bool keep) const;
  // States of parameters that were frozen before may be missing: they stay zero.
  void RestoreStates(const std::map<std::string, NDArray>& states);

  // Warns if those of the checkpoint are of other ranks than these.
  void RestoreResiduals(const Checkpoint& checkpoint);

  WeightAverage* average() const { return average_.get(); }  // null: none is kept
  // A run with averages, resumed from one without, starts them with its next update.
  void RestoreAverages(const Checkpoint& checkpoint);

  // Waits, and warns the listener if the loss scale was lowered since the last call. Throws
  // DivergedError if gradients overflow at every scale. `step`: for the messages.
  void ReportLossScale(int64_t step, TrainListener& listener);
  // As last reported; nothing unless gradients are computed in float16.
  const std::optional<LossScaleState>& reported_loss_scale() const { return reported_scale_; }
  std::optional<LossScaleState> ReadLossScale() const;  // waits
  void RestoreLossScale(const std::optional<LossScaleState>& saved);

 private:
  // By key of the store, in the order of the net; arrays per worker.
  struct Learned {
    std::string name;
    std::vector<NDArray> grads, weights;
  };
  bool WasFrozen(const std::string& parameter) const;
  int PriorityOf(int key) const;
  std::vector<OptimizerUpdater::Key> AddKeys(const BoundNet& net);
  void AddRowsRead(const BoundNet& net, std::vector<OptimizerUpdater::Key>* keys);
  NDArray FromRank(int rank, const NDArray& own, const NDArray& like, bool keep) const;
  void MakeAverage(const BoundNet& net);
  void MakeLossScale(const BoundNet& net, double rescale_grad);

  Runtime& runtime_;
  const TrainOptions& options_;
  const std::optional<int64_t> unfrozen_step_;
  std::unique_ptr<KVStore> kvstore_;
  std::unique_ptr<OptimizerUpdater> updater_;
  std::function<double(int64_t step)> rate_;  // of a round
  std::vector<Learned> learned_;
  struct ReadRows {
    int key = 0;
    size_t input = 0;  // of the batch
  };
  std::vector<ReadRows> rows_read_;
  std::vector<KVStore::KeySums> sums_of_;  // [key]: gradients of this step, summed over workers
  std::unique_ptr<WeightAverage> average_;
  std::optional<LossScale> loss_scale_;  // of training in float16
  std::optional<LossScaleState> reported_scale_;
};

}  // namespace mxtrain
