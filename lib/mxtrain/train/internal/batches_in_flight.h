// SPDX-License-Identifier: Apache-2.0
#pragma once
// The batches whose computation was pushed and not yet awaited, at most two; the functions that the
// engine runs when a batch is done: its losses and metrics are added to the scores, and data that
// came late are noticed (data_wait.h).
//
// Used by the training thread. The scores belong to pushed functions until WaitForScores.
#include <atomic>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "mxtrain/base/recycler.h"
#include "mxtrain/train/internal/bound_net.h"
#include "mxtrain/train/internal/data_wait.h"
#include "mxtrain/train/internal/parameter_updates.h"

namespace mxtrain {

class BatchesInFlight {
 public:
  // All arguments must outlive it; `workers`: their devices.
  BatchesInFlight(Runtime& runtime, const std::vector<Context>& workers, const DataIter& train,
                  EpochScores& scores);
  ~BatchesInFlight();  // waits for what it has pushed
  BatchesInFlight(const BatchesInFlight&) = delete;
  BatchesInFlight& operator=(const BatchesInFlight&) = delete;

  DataWait& data_wait() { return data_wait_; }

  // Around what pushes a batch. Begin waits until at most one older batch is in flight, and throws
  // the error of the one before it. `updated`: the batch ended with an update of the parameters;
  // `step`: its number (0 is the first).
  void Begin();
  // That wait alone.
  void WaitForOlder();
  void End(const DataBatch& batch, const BoundNet& net, const ParameterUpdates& updates,
           bool updated, int64_t step);

  void WaitForScores();
  // For everything that batches compute, updates too.
  void WaitForAll();
  // The first that a batch has thrown, or null; a wait rethrows it as an engine Error, which lacks
  // its details. Batches that follow may be running.
  const DivergedError* diverged() const { return has_diverged_ ? &*diverged_ : nullptr; }

 private:
  // A batch whose losses and metrics are still to be added.
  struct Outcome {
    std::vector<NDArray> outputs;  // of each worker in turn, readable by the host
    std::vector<NDArray> labels;
    std::vector<int64_t> index;
    int64_t count = 0, step = 0;
    void Clear() { outputs.clear(), labels.clear(); }
  };
  void MarkEnd(const ParameterUpdates& updates, bool updated);
  void Collect(const DataBatch& batch, const BoundNet& net, int64_t step);
  void TakeIn(const Outcome& outcome);
  [[noreturn]] void ThrowDiverged(int64_t step, const std::vector<int64_t>& index);

  Runtime& runtime_;
  const std::vector<Context>& workers_;
  const DataIter& train_;
  DataWait data_wait_;
  int64_t batches_ = 0;  // pushed so far

  // Variables without an array. Per worker: on a GPU mutated after everything that a batch computes
  // there.
  std::vector<engine::VarHandle> ends_;
  engine::VarHandle ended_ = nullptr;  // mutated when the host knows that a batch is done
  engine::VarHandle sums_ = nullptr;   // orders access to what the pushed functions share
  // Two, alternating: mutated by the last function of a batch.
  std::vector<engine::VarHandle> batch_marks_;

  Recycler<Outcome> outcomes_;
  // Of the training thread; kept to avoid allocations.
  std::vector<engine::VarHandle> reads_, writes_, computed_last_;

  // Guarded by sums_.
  EpochScores& scores_;
  std::optional<DivergedError> diverged_;  // written once, before the flag
  std::atomic<bool> has_diverged_ = false;
  std::vector<std::string> label_names_;
  std::vector<TBlob> output_blobs_;
  std::map<std::string, TBlob> label_blobs_;
};

}  // namespace mxtrain
