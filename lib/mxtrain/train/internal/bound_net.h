// SPDX-License-Identifier: Apache-2.0
#pragma once
// The net of a run, bound: an executor for each worker, and one for evaluation on the parameters
// of the first. Each worker takes an equal part of every batch; they hold the same values. Used by
// the training thread.
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "mxtrain/kvstore/collectives.h"
#include "mxtrain/train/carry.h"
#include "mxtrain/train/internal/rows_read.h"
#include "mxtrain/train/trainer.h"

namespace mxtrain {

// Attributes of a variable of a net; none if the net has no such variable.
const Attrs& AttrsOf(const Symbol& symbol, const std::string& variable);

class BoundNet {
 public:
  // The net of the options, or what follows its features, whose trunk has further arrays.
  struct Part {
    Symbol symbol;
    std::map<std::string, NDArray> args, auxs;  // not those of `symbol`
  };
  // Binds and initializes; with options.sync_batch_norm all ranks do so at the same time; `val` may
  // be null. Uses the kernel choices of options.model, and measures missing ones if the options
  // allow it. Options and iterators must outlive it. Throws kConfig for name patterns without a
  // match, and if every parameter is frozen.
  BoundNet(Runtime& runtime, const TrainOptions& options, Part part, const DataIter& train,
           DataIter* val);

  // Of each worker; with batches of several sizes, those of the largest.
  std::span<const std::unique_ptr<Executor>> executors() const { return executors_; }
  // Of each worker, those that ran the last batch. They share arrays and arena with executors().
  std::span<const std::unique_ptr<Executor>> running() const {
    return running_ == sizes_->largest() ? executors_ : smaller_[running_];
  }
  int num_workers() const { return static_cast<int>(executors_.size()); }
  Executor& first() const { return *executors_[0]; }
  Evaluation* evaluation() const { return evaluation_.get(); }  // null without validation data

  // Parameters and auxiliary states of the whole net, those of the first worker.
  std::map<std::string, NDArray> args() const { return WithTrunk(first().args(), net_.args); }
  std::map<std::string, NDArray> auxs() const { return WithTrunk(first().auxs(), net_.auxs); }

  // Those whose gradients are zero but for the rows that a batch reads.
  const std::vector<RowsRead>& rows_read() const { return rows_read_; }

  // Forward and backward of a batch, each worker on its part.
  void Step(const DataBatch& batch);

  // The states that go on from batch to batch (options.model.carry).
  void ZeroStates();
  std::map<std::string, NDArray> CarriedArrays() const;  // as in Checkpoint::carried

  // Sets the arrays of every worker; others keep their values.
  WeightsAccount Take(const std::map<std::string, NDArray>& weights);
  // Restores all arrays of every worker but those parameters. Throws kConfig if they do not match
  // the net.
  void Restore(const Checkpoint& checkpoint, const std::set<std::string>& but = {});

 private:
  using Arrays = std::map<std::string, NDArray>;
  static Arrays WithTrunk(Arrays own, const Arrays& trunk) {
    own.insert(trunk.begin(), trunk.end());
    return own;
  }
  void Bind(const DataIter& train, DataIter* val);
  void BindSmaller(const DataIter& train);
  void PrepareSums();
  void Initialize();
  // A parameter that layers before and after the features read has an array in both parts.
  void CopyShared();
  void CopyFirst();

  Runtime& runtime_;
  const TrainOptions& options_;
  const Part net_;
  CarryingNet bound_;
  std::vector<std::unique_ptr<Executor>> executors_;
  std::vector<CarriedStates> carried_;  // of each
  std::optional<BatchSizes> sizes_;
  std::vector<std::vector<std::unique_ptr<Executor>>> smaller_;  // by size, without the largest
  size_t running_ = 0;                                           // the size of the last batch
  std::vector<RowsRead> rows_read_;
  std::vector<std::vector<NDArray>> sums_;  // for batch norm, of workers; in the order of a step
  std::unique_ptr<Evaluation> evaluation_;
  std::unique_ptr<const InputOrder> input_order_;
  std::vector<NDArray> inputs_, part_;  // of Step, kept to avoid allocations
};

// Copies the checkpoint's arrays into those of their names. Throws kConfig if one is missing or has
// another shape; `what` they are, for errors.
void RestoreArrays(const std::map<std::string, NDArray>& from, const std::string& what,
                   const std::map<std::string, NDArray>& to);

}  // namespace mxtrain
