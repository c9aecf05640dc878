// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/engine/internal/ready_queue.h"

#include <algorithm>

namespace mxtrain::engine {

bool ReadyQueue::RunsAfter(const Entry& a, const Entry& b) {
  return a.priority != b.priority ? a.priority < b.priority : a.order > b.order;
}

void ReadyQueue::Push(Work* work) {
  if (head_ && !Precedes(*tail_, *work)) {
    heap_.push_back({work->priority, work->order, work});
    std::push_heap(heap_.begin(), heap_.end(), RunsAfter);
    return;
  }
  work->next = nullptr;
  (head_ ? tail_->next : head_) = work;
  tail_ = work;
}

bool ReadyQueue::HeapIsFirst() const {
  return !heap_.empty() &&
         (!head_ || RunsAfter({head_->priority, head_->order, head_}, heap_.front()));
}

Work* ReadyQueue::Pop() {
  if (!HeapIsFirst()) {
    Work* work = head_;
    head_ = work->next;
    return work;
  }
  std::pop_heap(heap_.begin(), heap_.end(), RunsAfter);
  Work* work = heap_.back().work;
  heap_.pop_back();
  return work;
}

Work* ReadyQueue::Exchange(Work* work) {
  if (empty() || Precedes(*work, HeapIsFirst() ? *heap_.front().work : *head_)) return work;
  Work* first = Pop();
  Push(work);
  return first;
}

}  // namespace mxtrain::engine
