#include "mxtrain/engine/threaded_var.h"

#include <mutex>

namespace mxtrain::engine {

bool ThreadedVar::TryGrant(const Link& link) {
  if (writing_ || (link.write && reading_ > 0)) return false;
  if (link.write) {
    writing_ = true;
  } else {
    ++reading_;
  }
  return true;
}

void ThreadedVar::PassError(const Link& link, ErrorLedger& ledger) {
  if (link.renews) error_.Renew(ledger);
  if (error_.any()) link.claim->error.Offer(error_.Get(ledger), link.rank);
}

bool ThreadedVar::Acquire(Link* link, ErrorLedger& ledger) {
  std::lock_guard lock(lock_);
  if (!head_ && TryGrant(*link)) {
    PassError(*link, ledger);
    return true;
  }
  link->next = nullptr;
  (head_ ? tail_->next : head_) = link;
  tail_ = link;
  return false;
}

void ThreadedVar::Release(Link* link, const std::exception_ptr& error, ErrorLedger& ledger, ReadyList* ready) {
  std::lock_guard lock(lock_);
  if (link->write) {
    writing_ = false;
    if (error) error_.Keep(error, ledger);
  } else if (--reading_ > 0) {
    return;  // the head, if there is one, is a write: reads would have been granted
  }
  while (head_ && TryGrant(*head_)) {
    Link* granted = head_;
    head_ = granted->next;  // before the claim may run and end
    PassError(*granted, ledger);
    if (CountGranted(*granted->claim)) ready->Push(granted->claim);
  }
  if (head_) __builtin_prefetch(head_);  // a long backlog lies outside the caches
}

std::exception_ptr ThreadedVar::TakeError(ErrorLedger& ledger) {
  std::lock_guard lock(lock_);
  return error_.any() ? error_.Take(ledger) : nullptr;
}

void ThreadedVar::Reset() {
  version_.store(0, std::memory_order_relaxed);
  error_ = KeptError();
}

}  // namespace mxtrain::engine
