// SPDX-License-Identifier: Apache-2.0
#pragma once
// Ready works in the order of Precedes. Most arrive in order and are appended to a list; the others
// go to a heap; the first of both is next. Not thread-safe.
#include <vector>

#include "mxtrain/engine/internal/work.h"

namespace mxtrain::engine {

class ReadyQueue {
 public:
  bool empty() const { return !head_ && heap_.empty(); }
  void Push(Work* work);
  Work* Pop();  // not empty
  // Returns the first of `work` and the queue; keeps the rest.
  Work* Exchange(Work* work);

 private:
  // A copy of what Precedes compares, so comparisons stay within the heap's memory.
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
