// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/device_lane.h"

#include <cstring>

#include "mxtrain/base/thread.h"

namespace mxtrain::engine {
namespace {

bool IsCopy(FnProperty property) {
  return property == FnProperty::kCopyFromDevice || property == FnProperty::kCopyToDevice;
}

}  // namespace

void DeviceMarks::Add(DeviceMark mark) {
  if (!mark.lane || mark.lane->Done(mark.ticket)) return;
  for (DeviceMark& known : marks_) {
    if (known.lane != mark.lane) continue;
    known.ticket = std::max(known.ticket, mark.ticket);
    return;
  }
  marks_.push_back(mark);
}

void DeviceMarks::DropFailed() {
  std::erase_if(marks_, [](const DeviceMark& mark) { return mark.lane->failed(); });
}

// ---- The worker

FailureRef DeviceLane::WaitFor(const DeviceMarks& marks) {
  for (const DeviceMark& mark : marks) {
    if (mark.lane == this || mark.lane->Done(mark.ticket)) continue;
    if (!stream_) {
      mark.lane->Drain();
      if (mark.lane->failed()) return mark.lane->failure();
      continue;
    }
    auto known = std::find_if(waited_.begin(), waited_.end(),
                              [&](const DeviceMark& waited) { return waited.lane == mark.lane; });
    if (known == waited_.end()) known = waited_.insert(waited_.end(), {mark.lane, 0});
    if (known->ticket >= mark.ticket) continue;
    if (FailureRef failure = mark.lane->LetWait(*stream_, mark.ticket, &known->ticket))
      return failure;
  }
  return nullptr;
}

FailureRef DeviceLane::LetWait(Stream& other, uint64_t ticket, uint64_t* waited) {
  MutexLock lock(mutex_);
  if (failure_) return failure_;
  try {
    const LaneEvent& event = EventBehind(ticket);
    other.WaitFor(*event.event);
    *waited = event.ticket;
    return nullptr;
  } catch (...) {
    Fail(std::current_exception());
    return failure_;
  }
}

DeviceMark DeviceLane::Issue(const char* name, uint64_t order) {
  if (!stream_) return {};
  uint64_t ticket = 0;
  {
    SpinLockGuard lock(issued_lock_);
    ticket = issued_.load(std::memory_order_relaxed) + 1;
    Issued& issued = remembered_[ticket % kRemembered];
    issued.ticket = ticket;
    issued.order = order;
    std::strncpy(issued.name.data(), name, issued.name.size() - 1);
    issued_.store(ticket, std::memory_order_release);
  }
  if (IsCopy(property_)) SetEventBehind(ticket);
  return {this, ticket};
}

// ---- Events

DeviceLane::LaneEvent* DeviceLane::FindEvent(uint64_t ticket) {
  const auto found = std::find_if(events_.begin(), events_.end(),
                                  [&](const LaneEvent& event) { return event.ticket >= ticket; });
  return found == events_.end() ? nullptr : &*found;
}

DeviceLane::LaneEvent& DeviceLane::EventBehind(uint64_t ticket) {
  if (LaneEvent* event = FindEvent(ticket)) return *event;
  const size_t kept = IsCopy(property_) ? kKeptEventsOfCopies : kKeptEvents;
  while (events_.size() >= kept && events_.front().claims.empty() && !completing_) RetireFront();
  LaneEvent event;
  if (free_.empty()) {
    event.event = stream_->NewEvent();
  } else {
    event = std::move(free_.back());
    free_.pop_back();
  }
  // Before the event is recorded: work issued meanwhile may be behind it.
  event.ticket = issued_.load(std::memory_order_acquire);
  stream_->Record(*event.event);
  return events_.emplace_back(std::move(event));
}

void DeviceLane::RetireFront() {
  events_.front().claims.clear();
  free_.push_back(std::move(events_.front()));
  events_.pop_front();
}

void DeviceLane::SetEventBehind(uint64_t ticket) {
  if (Done(ticket)) return;
  MutexLock lock(mutex_);
  if (failure_) return;
  try {
    EventBehind(ticket);
  } catch (...) {
    Fail(std::current_exception());
  }
}

// ---- Host claims

bool DeviceLane::Park(Claim* claim, uint64_t ticket) {
  if (Done(ticket)) return false;
  MutexLock lock(mutex_);
  if (!failure_) {
    try {
      EventBehind(ticket).claims.push_back(claim);
      ++parked_;
      if (!completer_.joinable()) completer_ = StartThread([this] { Complete(); });
      changed_.NotifyOne();
      return true;
    } catch (...) {
      Fail(std::current_exception());
    }
  }
  claim->failure.Offer(failure_, kDeviceRank);
  return false;
}

bool DeviceLane::Rests() const {
  MutexLock lock(mutex_);
  return parked_ == 0;
}

void DeviceLane::Complete() {
  MutexLock lock(mutex_);
  while (true) {
    if (parked_ == 0) {
      lock.Unlock();
      owner_.Rest();
      lock.Lock();
    }
    while (parked_ == 0 && !stopping_) changed_.Wait(lock);
    if (parked_ == 0) return;
    while (events_.front().claims.empty()) RetireFront();
    completing_ = true;
    Event& event = *events_.front().event;
    lock.Unlock();
    std::exception_ptr error;
    try {
      event.Wait();
    } catch (...) {
      error = std::current_exception();
    }
    lock.Lock();
    completing_ = false;
    if (error) {
      Fail(error);
    } else {
      RaiseDone(events_.front().ticket);
    }
    ReadyList ready;
    for (Claim* claim : events_.front().claims) {
      --parked_;
      if (error) claim->failure.Offer(failure_, kDeviceRank);
      if (CountGranted(*claim)) ready.Push(claim);
    }
    RetireFront();
    lock.Unlock();
    owner_.Resume(ready);
    lock.Lock();
  }
}

void DeviceLane::Drain() {
  const uint64_t ticket = issued_.load(std::memory_order_acquire);
  if (Done(ticket) || failed()) return;
  try {
    const std::unique_ptr<Event> event = stream_->NewEvent();
    stream_->Record(*event);
    event->Wait();
    MutexLock lock(mutex_);
    RaiseDone(ticket);
  } catch (...) {
    MutexLock lock(mutex_);
    Fail(std::current_exception());
  }
}

void DeviceLane::RaiseDone(uint64_t ticket) {
  if (ticket > done_.load(std::memory_order_relaxed))
    done_.store(ticket, std::memory_order_release);
}

void DeviceLane::Stop() {
  {
    MutexLock lock(mutex_);
    stopping_ = true;
  }
  changed_.NotifyOne();
  if (completer_.joinable()) completer_.join();
}

// ---- Failure

FailureRef DeviceLane::failure() const {
  if (!failed()) return nullptr;
  MutexLock lock(mutex_);
  return failure_;
}

DeviceLane::Issued DeviceLane::OldestNotDone() {
  SpinLockGuard lock(issued_lock_);
  const uint64_t last = issued_.load(std::memory_order_relaxed),
                 done = done_.load(std::memory_order_relaxed);
  const uint64_t oldest = std::max(done + 1, last >= kRemembered ? last - kRemembered + 1 : 1);
  return remembered_[std::min(oldest, last) % kRemembered];
}

// The device does not tell which of the functions not known to be done failed.
void DeviceLane::Fail(const std::exception_ptr& error) {
  if (failure_) return;
  const Issued blamed = OldestNotDone();
  failure_ = owner_.AddFailure(error, blamed.name.data(), blamed.order);
  failed_.store(true, std::memory_order_release);
}

}  // namespace mxtrain::engine
