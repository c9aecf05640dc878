#pragma once
// The stream of a worker as the rest of the engine sees it: what was issued on it, what is known to be done, who waits for that.
//
// The worker issues; every function gets a ticket, counted from 1. An event is set behind a ticket only when somebody asks: another lane,
// whose stream then waits on the device, or a claim of the host, which the lane's completer (a thread that starts with the first claim)
// makes ready when the event has come. Whoever makes a dependant ready asks at once, so that an event stands close behind the work that it
// is for.
//
// A lane fails for good when its stream does. The failure goes to the claims that wait for its work and to every function that it would
// run.
#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "mxtrain/device/context.h"
#include "mxtrain/engine/device_marks.h"
#include "mxtrain/engine/spin_lock.h"
#include "mxtrain/engine/work.h"

namespace mxtrain::engine {

// Implemented by the engine.
class LaneOwner {
 public:
  virtual ~LaneOwner() = default;
  // Claims whose last device work is done.
  virtual void Resume(ReadyList& ready) = 0;
  // The failure of a device, found behind the function `name` at place `order`: named and entered into the book.
  virtual std::exception_ptr EnterLaneFailure(std::exception_ptr error, const char* name, uint64_t order) = 0;
};

class DeviceLane {
 public:
  explicit DeviceLane(LaneOwner& owner) : owner_(owner) {}
  ~DeviceLane() { Stop(); }

  // On the worker's thread: before anything is issued. Null: what functions do is done when they return.
  void Attach(Stream* stream) { stream_ = stream; }
  // Work issued from now on follows the marks. The failure of one of their lanes, or null.
  std::exception_ptr WaitFor(const DeviceMarks& marks);
  // A function has issued its work.
  DeviceMark Issue(const char* name, uint64_t order);

  // From any thread.
  bool Done(uint64_t ticket) const { return ticket <= done_.load(std::memory_order_acquire); }
  bool failed() const { return failed_.load(std::memory_order_acquire); }
  std::exception_ptr failure() const;  // null when it has not failed
  // Sets an event behind the ticket if none stands there.
  void SetEventBehind(uint64_t ticket);
  // True: counts the claim down (CountGranted) when the ticket is done, with the lane's failure if it has failed. False: there is nothing
  // to wait for; a failure was offered to the claim.
  bool Park(Claim* claim, uint64_t ticket);
  // Blocks until all that is issued is done.
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
  static constexpr size_t kRemembered = 256;  // functions that a failure may be blamed on
  static constexpr size_t kKeptEvents = 8;

  // With mutex_ held.
  LaneEvent* FindEvent(uint64_t ticket);
  LaneEvent& EventBehind(uint64_t ticket);
  void RetireFront();
  void Fail(const std::exception_ptr& error);
  void RaiseDone(uint64_t ticket);

  std::exception_ptr LetWait(Stream& other, uint64_t ticket, uint64_t* waited);
  Issued OldestNotDone();
  void Complete();

  LaneOwner& owner_;
  Stream* stream_ = nullptr;        // published by issued_
  std::vector<DeviceMark> waited_;  // the worker's: what its stream follows already
  std::atomic<uint64_t> issued_{0};
  std::atomic<uint64_t> done_{0};
  std::atomic<bool> failed_{false};

  SpinLock issued_lock_;
  std::array<Issued, kRemembered> remembered_;  // guarded by issued_lock_; ticket t at t % kRemembered

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<LaneEvent> events_;  // guarded by mutex_, as all that follows; tickets rise
  std::vector<LaneEvent> free_;
  int parked_ = 0;           // claims in events_
  bool completing_ = false;  // the completer waits for the front
  bool stopping_ = false;
  std::exception_ptr failure_;
  std::thread completer_;
};

}  // namespace mxtrain::engine
