#pragma once
// Counts heap allocations of the whole process through operator new, which allocation_count.cc replaces for the test executable and for the
// shared libraries that it loads. Allocations by malloc alone (a C library's own) are not seen.
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

}  // namespace mxtrain::test
