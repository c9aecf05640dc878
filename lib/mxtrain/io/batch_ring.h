#pragma once
// The pipeline's monitor: slots with the arrays of a batch each, and who may do what with them now. Private to io.
//
//   free --NextEvent--> pushed --Open--> filling --last row, Finish--> full --NextEvent--> leased --dropped--> free
//
// A slot gets its batch number when the engine opens it, so the earliest batch lies in the slot that is ready first. Where no batch is left
// to fill, an opened slot is finished at once and is free again. Slots are filled in order of batches; workers take rows of the first one
// that has some left.
#include <condition_variable>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "mxtrain/engine/engine.h"
#include "mxtrain/io/batch_plan.h"
#include "mxtrain/io/data_iter.h"
#include "mxtrain/io/example_loader.h"

namespace mxtrain::io {

struct Slot {
  enum State { kFree, kPushed, kFilling, kFull, kLeased, kSkipped };

  // Constant after construction (the arrays are released when the pipeline ends).
  std::vector<NDArray> data, label;

  // Guarded by the ring's mutex.
  State state = kFree;
  int64_t batch = 0, next_row = 0, rows_left = 0, in_work = 0;  // rows_left: not yet written; in_work: taken, not yet given back
  std::optional<engine::Callback> finished;
  std::vector<std::pair<int64_t, BadExample>> bad;  // with their rows
  std::exception_ptr error;

  // Written by workers, each its own rows, while filling, then by the one that seals the batch; read by the consumer afterwards.
  BatchPointers rows;
  std::vector<int64_t> index;  // of each row's example; -1 for padding and for an example that could not be had
};

// Rows that a worker has taken.
struct Claim {
  Slot* slot = nullptr;
  std::shared_ptr<const EpochPlan> plan;
  int64_t batch = 0, begin = 0, end = 0;
};

// Every method is safe from every thread; those under "consumer" are for one thread at a time.
class BatchRing : public std::enable_shared_from_this<BatchRing> {
 public:
  // `grain`: rows of a claim. Slots must be added before use.
  BatchRing(int64_t batch_size, int64_t grain) : batch_size_(batch_size), grain_(grain) {}
  void AddSlot(std::unique_ptr<Slot> slot);

  // Engine: the arrays of a slot may be written until `finished` is called. Skipped: they carry an error, nothing was opened.
  void Open(Slot* slot, engine::Callback finished);
  void Skip(Slot* slot);

  // Workers. Take waits for rows; false: the pipeline ends.
  bool Take(Claim* claim);
  // True: these were the last rows of the batch, which the caller must Finish.
  bool Give(const Claim& claim, std::vector<std::pair<int64_t, BadExample>> bad, std::exception_ptr error);
  void Finish(Slot* slot);

  // Consumer.
  // Leaves what is not delivered, waits for the rows in work, and goes on with the new plan.
  void Restart(std::shared_ptr<const EpochPlan> plan, int64_t first_batch);
  struct Event {
    enum Kind { kPush, kGrow, kSkipped, kDelivered, kEnd } kind = kEnd;
    Slot* slot = nullptr;
  };
  // Waits until there is something to do: push a free slot, add one because the caller holds all, fetch the error of a skipped one, or hand
  // out the next batch, whose slot is then leased.
  Event NextEvent();
  std::shared_ptr<void> Lease(Slot* slot);
  void Free(Slot* slot);
  std::shared_ptr<const EpochPlan> plan() const;
  // Workers leave; after they are joined, Close finishes what is open and lets go of the arrays.
  void Stop();
  void Close();

 private:
  void Begin(Slot* slot);  // the next batch
  bool Wanted() const { return plan_ && to_open_ < plan_->batches; }
  int64_t CountOf(Slot::State state) const;
  Slot* FindState(Slot::State state);

  const int64_t batch_size_, grain_;

  mutable std::mutex mutex_;
  std::condition_variable work_, changed_;
  std::vector<std::unique_ptr<Slot>> slots_;
  std::deque<Slot*> filling_;  // in order of batches
  std::shared_ptr<const EpochPlan> plan_;
  int64_t to_open_ = 0, to_deliver_ = 0;  // batch numbers
  bool stopped_ = false;
};

}  // namespace mxtrain::io
