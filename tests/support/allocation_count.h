#pragma once
// Counts heap allocations of the whole process, and their bytes, through operator new, which allocation_count.cc replaces for the test
// executable and for the shared libraries that it loads. Allocations by malloc alone (a C library's own) are not seen.
#include <cstdint>

namespace mxtrain::test {

// Allocations since the process began, by every thread.
int64_t AllocationsSoFar();

// What was allocated during the life of the object.
class AllocationCount {
 public:
  AllocationCount() : start_(AllocationsSoFar()) {}
  int64_t value() const { return AllocationsSoFar() - start_; }

 private:
  int64_t start_;
};

// The most bytes that were allocated at once during the life of the object, beyond those at its beginning. One at a time.
class PeakBytes {
 public:
  PeakBytes();
  int64_t value() const;

 private:
  int64_t start_;
};

}  // namespace mxtrain::test
