// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives of a group of processes as engine operations on arrays. All ranks call them in the
// same order, in the thread that drives the run; they push and return.
#include <memory>

#include "mxtrain/device/process_group.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// An all-reduce (sum) of one host array, pushed once per step. Its place in the order of all
// collectives is that of the push. The array's padding is summed too: keep it zero.
class MXTRAIN_API PreparedAllReduce {
 public:
  PreparedAllReduce(std::shared_ptr<ProcessGroup> group, const NDArray& array);
  ~PreparedAllReduce();
  PreparedAllReduce(const PreparedAllReduce&) = delete;
  PreparedAllReduce& operator=(const PreparedAllReduce&) = delete;

  const NDArray& array() const { return array_; }
  void Push(int priority);

 private:
  struct Places;
  const std::shared_ptr<ProcessGroup> group_;
  const NDArray array_;
  const std::shared_ptr<Places> places_;  // reserved by pushes, not yet started
  engine::OprHandle all_reduce_ = nullptr;
};

// Replaces the array by rank 0's; every rank has the same shape, type and layout.
MXTRAIN_API void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array);

}  // namespace mxtrain
