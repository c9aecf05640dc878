// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts heap allocations of the whole process, and their bytes, and makes single ones fail,
// through operator new, which allocation_count.cc replaces for the test executable and its shared
// libraries. Allocations by malloc (a C library's own) are not counted.
#include <cstdint>

namespace mxtrain::test {

// Allocations since the process started, by all threads.
int64_t AllocationsSoFar();

// Allocations during the lifetime of the object.
class AllocationCount {
 public:
  AllocationCount() : start_(AllocationsSoFar()) {}
  int64_t value() const { return AllocationsSoFar() - start_; }

 private:
  int64_t start_;
};

// Peak allocated bytes during the lifetime of the object, relative to its start. One object at a
// time.
class PeakBytes {
 public:
  PeakBytes();
  int64_t value() const;

 private:
  int64_t start_;
};

// During its lifetime, the calling thread's allocation after the first `count` throws
// std::bad_alloc, once. One object at a time.
class FailingAllocation {
 public:
  explicit FailingAllocation(int64_t count);
  ~FailingAllocation();
  FailingAllocation(const FailingAllocation&) = delete;
  FailingAllocation& operator=(const FailingAllocation&) = delete;
};

}  // namespace mxtrain::test
