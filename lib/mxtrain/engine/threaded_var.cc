// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/threaded_var.h"

#include <utility>

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

void ThreadedVar::Pass(const Link& link) {
  if (failure_) {
    if (link.renews && failure_->ThrownBefore(link.claim->order)) failure_ = nullptr;
    if (failure_) link.claim->failure.Offer(failure_, link.rank);
  }
  if (!issued_) return;
  if (!issued_->writes.empty()) link.claim->Mark(issued_->writes);
  if (link.write && !issued_->reads.empty()) link.claim->Mark(issued_->reads);
}

void ThreadedVar::KeepMarks(const Link& link, const DeviceMarks* marks) {
  if (!issued_) {
    if (!marks) return;
    issued_ = std::make_unique<Issued>();
  }
  if (link.write) {  // it waited for all work issued before
    issued_->writes.Clear();
    issued_->reads.Clear();
  }
  if (marks) (link.write ? issued_->writes : issued_->reads).Add(*marks);
}

void ThreadedVar::DropFailedMarks() {
  SpinLockGuard lock(lock_);
  if (!issued_) return;
  issued_->writes.DropFailed();
  issued_->reads.DropFailed();
}

bool ThreadedVar::Acquire(Link* link) {
  SpinLockGuard lock(lock_);
  if (!head_ && TryGrant(*link)) {
    Pass(*link);
    return true;
  }
  link->next = nullptr;
  (head_ ? tail_->next : head_) = link;
  tail_ = link;
  return false;
}

void ThreadedVar::Release(Link* link, const FailureRef& failure, const DeviceMarks* marks,
                          ReadyList* ready) {
  SpinLockGuard lock(lock_);
  if (issued_ || marks) KeepMarks(*link, marks);
  if (link->write) {
    writing_ = false;
    if (failure && !failure_) failure_ = failure;
  } else if (--reading_ > 0) {
    return;  // the head, if any, is a write: reads would have been granted
  }
  while (head_ && TryGrant(*head_)) {
    Link* granted = head_;
    head_ = granted->next;  // before the claim may run and end
    Pass(*granted);
    if (CountGranted(*granted->claim)) ready->Push(granted->claim);
  }
  if (head_) __builtin_prefetch(head_);  // a long backlog is not in the caches
}

FailureRef ThreadedVar::TakeFailure() {
  SpinLockGuard lock(lock_);
  return std::exchange(failure_, nullptr);
}

void ThreadedVar::Reset() {
  version_.store(0, std::memory_order_relaxed);
  failure_ = nullptr;
  issued_ = nullptr;
}

}  // namespace mxtrain::engine
