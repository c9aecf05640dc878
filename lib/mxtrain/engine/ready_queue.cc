#include "mxtrain/engine/ready_queue.h"

#include <algorithm>

namespace mxtrain::engine {
namespace {
bool RunsAfter(const Work* a, const Work* b) {
  return Precedes(*b, *a);
}
}  // namespace

void ReadyQueue::Push(Work* work) {
  if (head_ && !Precedes(*tail_, *work)) {
    heap_.push_back(work);
    std::push_heap(heap_.begin(), heap_.end(), RunsAfter);
    return;
  }
  work->next = nullptr;
  (head_ ? tail_->next : head_) = work;
  tail_ = work;
}

const Work* ReadyQueue::First() const {
  if (heap_.empty() || (head_ && Precedes(*head_, *heap_.front()))) return head_;
  return heap_.front();
}

Work* ReadyQueue::Pop() {
  if (First() == head_) {
    Work* work = head_;
    head_ = work->next;
    return work;
  }
  std::pop_heap(heap_.begin(), heap_.end(), RunsAfter);
  Work* work = heap_.back();
  heap_.pop_back();
  return work;
}

Work* ReadyQueue::Exchange(Work* work) {
  if (empty() || Precedes(*work, *First())) return work;
  Work* first = Pop();
  Push(work);
  return first;
}

}  // namespace mxtrain::engine
