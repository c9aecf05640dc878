// SPDX-License-Identifier: Apache-2.0
#pragma once
// A worker's stream as the rest of the engine sees it: what was issued, what is known to be done,
// and who waits.
//
// The worker issues; every function gets a ticket, counted from 1, when it has issued all its work:
// an asynchronous one perhaps on another thread. An event is recorded behind a
// ticket on request: by another lane, whose stream then waits on the device, or by a host claim,
// which the lane's completer thread (started with the first claim) makes ready once the event has
// completed. Whoever makes a dependant ready requests the event at once, so it closely follows the
// work it stands for. A lane of copies records one behind every ticket, and keeps the last 64: the
// host reuses a copied buffer later, when the stream may already have been given copies that wait
// for a step.
//
// A lane fails permanently when its stream fails. The failure goes to the claims that wait for its
// work and to every function it would run.
#include <array>
#include <atomic>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <thread>
#include <vector>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/context.h"
#include "mxtrain/engine/engine.h"
#include "mxtrain/engine/internal/device_marks.h"
#include "mxtrain/engine/internal/spin_lock.h"
#include "mxtrain/engine/internal/work.h"

namespace mxtrain::engine {

// Implemented by the engine.
class LaneOwner {
 public:
  virtual ~LaneOwner() = default;
  // Claims whose last device work is done.
  virtual void Resume(ReadyList& ready) = 0;
  // A device failed; the function `name` at position `order` is blamed.
  virtual FailureRef AddFailure(std::exception_ptr error, const char* name, uint64_t order) = 0;
  // A thread of the engine has nothing more to do for now.
  virtual void Rest() = 0;
};

class DeviceLane {
 public:
  DeviceLane(LaneOwner& owner, FnProperty property) : owner_(owner), property_(property) {}
  ~DeviceLane() { Stop(); }

  // On the worker's thread, before anything is issued. Null: functions are synchronous.
  void Attach(Stream* stream) { stream_ = stream; }
  // Work issued from now on waits for the marks. Returns the failure of one of their lanes, or
  // null.
  FailureRef WaitFor(const DeviceMarks& marks);

  // From any thread.
  // A function has issued its work: the ticket stands for all that was given to the stream so far.
  DeviceMark Issue(const char* name, uint64_t order);
  // Whether no host claim waits for its work.
  bool Rests() const;
  bool Done(uint64_t ticket) const { return ticket <= done_.load(std::memory_order_acquire); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  FailureRef failure() const;  // null when it has not failed
  // Records an event behind the ticket unless there is one.
  void SetEventBehind(uint64_t ticket);
  // True: the claim is counted down (CountGranted) when the ticket is done, with the lane's failure
  // if it failed. False: nothing to wait for; a failure was offered to the claim.
  bool Park(Claim* claim, uint64_t ticket);
  // Blocks until all issued work is done.
  void Drain();
  void Stop();  // ends the completer; nothing may be parked

 private:
  struct LaneEvent {
    std::unique_ptr<Event> event;
    uint64_t ticket = 0;
    std::vector<Claim*> claims;
  };
  struct Issued {
    uint64_t ticket = 0;
    uint64_t order = 0;
    std::array<char, 48> name = {};
  };
  static constexpr size_t kRemembered = 256;  // functions that a failure can be attributed to
  static constexpr size_t kKeptEvents = 8, kKeptEventsOfCopies = 64;

  LaneEvent* FindEvent(uint64_t ticket) MXTRAIN_REQUIRES(mutex_);
  LaneEvent& EventBehind(uint64_t ticket) MXTRAIN_REQUIRES(mutex_);
  void RetireFront() MXTRAIN_REQUIRES(mutex_);
  void Fail(const std::exception_ptr& error) MXTRAIN_REQUIRES(mutex_);
  void RaiseDone(uint64_t ticket) MXTRAIN_REQUIRES(mutex_);

  FailureRef LetWait(Stream& other, uint64_t ticket, uint64_t* waited);
  Issued OldestNotDone();
  void Complete();

  LaneOwner& owner_;
  const FnProperty property_;
  Stream* stream_ = nullptr;        // published through issued_
  std::vector<DeviceMark> waited_;  // the worker's: what its stream already waits for
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> failed_{false};

  SpinLock issued_lock_;
  // Ticket t at t % kRemembered.
  std::array<Issued, kRemembered> remembered_ MXTRAIN_GUARDED_BY(issued_lock_);

  mutable Mutex mutex_ MXTRAIN_ACQUIRED_BEFORE(issued_lock_);
  ConditionVariable changed_;
  std::deque<LaneEvent> events_ MXTRAIN_GUARDED_BY(mutex_);  // tickets rise
  std::vector<LaneEvent> free_ MXTRAIN_GUARDED_BY(mutex_);
  int parked_ MXTRAIN_GUARDED_BY(mutex_) = 0;           // claims in events_
  bool completing_ MXTRAIN_GUARDED_BY(mutex_) = false;  // the completer waits for the front
  bool stopping_ MXTRAIN_GUARDED_BY(mutex_) = false;
  FailureRef failure_ MXTRAIN_GUARDED_BY(mutex_);
  std::thread completer_;  // started by Park under mutex_; joined by Stop, after the last Park
};

}  // namespace mxtrain::engine
