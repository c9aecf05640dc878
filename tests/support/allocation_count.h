// SPDX-License-Identifier: Apache-2.0
#pragma once
// Counts heap allocations of the whole process, and their bytes, through operator new, which
// allocation_count.cc replaces for the test executable and its shared libraries. Allocations by
// malloc (a C library's own) are not counted.
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

}  // namespace mxtrain::test
