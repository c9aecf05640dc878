#pragma once
// A variable of the threaded engine: a queue of links. Links are granted strictly in push order: a write alone, neighbouring reads
// together. A granted link leaves the queue, so that the queue holds only what waits; the variable counts what it has granted and not got
// back.
#include <atomic>
#include <cstdint>
#include <exception>
#include <memory>

#include "mxtrain/engine/device_marks.h"
#include "mxtrain/engine/error_ledger.h"
#include "mxtrain/engine/handles.h"
#include "mxtrain/engine/spin_lock.h"
#include "mxtrain/engine/work.h"

namespace mxtrain::engine {

class ThreadedVar final : public Var {
 public:
  // Puts the link at the end of the queue; true when it is granted at once. An error that the variable carries goes to the claim. Callers
  // hold the engine's push lock, which makes a push over several variables atomic.
  bool Acquire(Link* link, const ErrorLedger& ledger);
  // Gives a granted link back; a written variable keeps `error` if there is one. Claims that thereby get their last variable become ready.
  // `marks`: work on devices that was issued under the link and may not be done; null: none.
  void Release(Link* link, const std::exception_ptr& error, const DeviceMarks* marks, const ErrorLedger& ledger, ReadyList* ready);
  // Takes the error away; for the claim of a wait, which holds the variable.
  std::exception_ptr TakeError();

  // Forgets work on lanes that have failed: a wait has thrown their failure.
  void DropFailedMarks();

  uint64_t version() const { return version_.load(std::memory_order_relaxed); }
  void CountWrite() { version_.store(version() + 1, std::memory_order_relaxed); }  // under the push lock
  void Reset();                                                                    // as new; nobody holds or waits for it

  uint64_t last_push = 0;            // guarded by the push lock: the last push that named it
  ThreadedVar* next_free = nullptr;  // FreeList's

 private:
  bool TryGrant(const Link& link);  // with lock_ held
  void Pass(const Link& link, const ErrorLedger& ledger);
  void KeepMarks(const Link& link, const DeviceMarks* marks);

  // Work on devices that was issued under released links and may not be done: a reader follows the last write, a writer that and all reads
  // since.
  struct Issued {
    DeviceMarks writes, reads;
  };

  std::atomic<uint64_t> version_{0};

  SpinLock lock_;
  bool writing_ = false;  // guarded by lock_, as all that follows
  int reading_ = 0;
  Link* head_ = nullptr;
  Link* tail_ = nullptr;
  KeptError error_;
  std::unique_ptr<Issued> issued_;  // null until a device works on the variable
};

}  // namespace mxtrain::engine
