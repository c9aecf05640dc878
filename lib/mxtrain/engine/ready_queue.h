#pragma once
// Ready works in the order of Precedes. Most arrive in that order already: those are appended to a list, the others go to a heap, and the
// first of both is next. Not thread-safe.
#include <vector>

#include "mxtrain/engine/work.h"

namespace mxtrain::engine {

class ReadyQueue {
 public:
  bool empty() const { return !head_ && heap_.empty(); }
  void Push(Work* work);
  Work* Pop();  // not empty
  // The first of `work` and the queue; keeps the rest.
  Work* Exchange(Work* work);

 private:
  // A copy of what Precedes looks at, so that the heap's comparisons stay within the heap.
  struct Entry {
    int priority;
    uint64_t order;
    Work* work;
  };
  static bool RunsAfter(const Entry& a, const Entry& b);
  bool HeapIsFirst() const;

  Work* head_ = nullptr;  // ordered list
  Work* tail_ = nullptr;
  std::vector<Entry> heap_;
};

}  // namespace mxtrain::engine
