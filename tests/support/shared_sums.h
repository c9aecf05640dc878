// SPDX-License-Identifier: Apache-2.0
#pragma once
// All-reduce between threads of one process or of several, through a named piece of shared memory:
// what fake GPUs of several ranks sum by. Members add in their order, bfloat16 rounded at each
// addition, as the fake communicator of one process does (fake_gpu.h).
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "mxtrain/base/dtype.h"

namespace mxtrain::test {

class SharedSums {
 public:
  // A name for one group of members, unique on this machine.
  static std::string NewName();

  // Member `rank` of `size`. Throws kFileSystem.
  SharedSums(const std::string& name, int rank, int size);
  ~SharedSums();
  SharedSums(const SharedSums&) = delete;
  SharedSums& operator=(const SharedSums&) = delete;

  // Whether all members are here.
  bool complete() const;
  // Replaces the array, float32 or bfloat16, by its sum over the members; waits for them. Returns
  // early, without a result, once Abort was called, and if the members sum different arrays, which
  // all of them then see as `mismatch`.
  void AllReduce(void* data, int64_t n, DType type);
  void Abort() { aborted_ = true; }  // by any thread; this member alone
  void Finish();
  bool finished() const;  // whether all members have called Finish
  // By any thread: waits until all members that came have left, but no longer than this.
  void Leave(std::chrono::seconds longest);
  bool mismatch() const;

 private:
  struct Board;
  bool Meet();

  const std::string name_;
  const int rank_, size_;
  Board* board_;
  uint64_t meetings_ = 0;
  std::atomic<bool> aborted_{false};
};

}  // namespace mxtrain::test
