// SPDX-License-Identifier: Apache-2.0
#pragma once
// The pipeline's monitor: slots, each with the arrays of one batch, and their states. Private to
// io.
//
//   free --NextEvent--> pushed --Open--> filling --last row, Finish--> full
//   full --NextEvent--> leased --dropped--> free
//
// A slot gets its batch number when the engine opens it, so the earliest batch is in the slot that
// is ready first. If no batch is left to fill, an opened slot is finished at once and free again.
// Slots are filled in batch order; workers take rows from the first one that has rows left.
#include <deque>
#include <exception>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/internal/batch_plan.h"
#include "mxtrain/io/internal/example_loader.h"

namespace mxtrain::io {

struct Slot {
  enum State { kFree, kPushed, kFilling, kFull, kLeased, kSkipped };

  // Constant after construction (the arrays are released when the pipeline ends).
  std::vector<NDArray> data, label;

  // Guarded by the ring's mutex.
  State state = kFree;
  int64_t batch = 0, next_row = 0;
  int64_t rows_left = 0;  // not written
  int64_t in_work = 0;    // taken, not given back
  std::optional<engine::Callback> finished;
  std::vector<std::pair<int64_t, BadExample>> bad;  // with their rows
  std::exception_ptr error;

  // While filling, each worker writes its own rows, then one worker finishes the batch; afterwards
  // read by the consumer.
  BatchPointers rows;
  std::vector<ImageOrigin> origins;  // of each row, if they are asked for
  std::vector<int64_t> index;  // of each row's example; -1 for padding and unreadable examples
};

// Rows that a worker has taken.
struct Claim {
  Slot* slot = nullptr;
  std::shared_ptr<const EpochPlan> plan;
  int64_t batch = 0, begin = 0, end = 0;
};

// All methods are thread-safe; those under "consumer" are for one thread at a time.
class BatchRing : public std::enable_shared_from_this<BatchRing> {
 public:
  // `grain`: rows of a claim. Slots must be added before use.
  BatchRing(int64_t batch_size, int64_t grain) : batch_size_(batch_size), grain_(grain) {}
  void AddSlot(std::unique_ptr<Slot> slot);

  // Engine: the arrays of a slot may be written until `finished` is called. Skip: they carry an
  // error and were not opened.
  void Open(Slot* slot, engine::Callback finished);
  void Skip(Slot* slot);

  // Workers. Take waits for rows; false: the pipeline is stopping.
  bool Take(Claim* claim);
  // True: these were the last rows of the batch, which the caller must Finish.
  bool Give(const Claim& claim, std::vector<std::pair<int64_t, BadExample>> bad,
            std::exception_ptr error);
  void Finish(Slot* slot);

  // Consumer.

  // Discards undelivered batches, waits for rows in work, and continues with the new plan.
  void Restart(std::shared_ptr<const EpochPlan> plan, int64_t first_batch);
  struct Event {
    enum Kind { kPush, kGrow, kSkipped, kDelivered, kEnd } kind = kEnd;
    Slot* slot = nullptr;
  };
  // Waits for the next action: push a free slot, add one because the caller holds all, fetch the
  // error of a skipped one, or deliver the next batch, whose slot is then leased.
  Event NextEvent();
  std::shared_ptr<void> Lease(Slot* slot);
  void Free(Slot* slot);
  std::shared_ptr<const EpochPlan> plan() const;
  // Stop ends the workers; after they are joined, Close finishes open slots and releases the
  // arrays.
  void Stop();
  void Close();

 private:
  void Begin(Slot* slot) MXTRAIN_REQUIRES(mutex_);  // the next batch
  bool Wanted() const MXTRAIN_REQUIRES(mutex_) { return plan_ && to_open_ < plan_->batches; }
  bool AnyInWork() const MXTRAIN_REQUIRES(mutex_);
  int64_t CountOf(Slot::State state) const MXTRAIN_REQUIRES(mutex_);
  Slot* FindState(Slot::State state) MXTRAIN_REQUIRES(mutex_);

  const int64_t batch_size_, grain_;

  mutable Mutex mutex_;
  ConditionVariable work_, changed_;
  std::vector<std::unique_ptr<Slot>> slots_ MXTRAIN_GUARDED_BY(mutex_);
  std::deque<Slot*> filling_ MXTRAIN_GUARDED_BY(mutex_);  // in order of batches
  std::shared_ptr<const EpochPlan> plan_ MXTRAIN_GUARDED_BY(mutex_);
  // Batch numbers.
  int64_t to_open_ MXTRAIN_GUARDED_BY(mutex_) = 0, to_deliver_ MXTRAIN_GUARDED_BY(mutex_) = 0;
  bool stopped_ MXTRAIN_GUARDED_BY(mutex_) = false;
};

}  // namespace mxtrain::io
