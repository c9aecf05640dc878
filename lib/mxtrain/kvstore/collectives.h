// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives of a group of processes as engine operations on arrays. All ranks call them in the
// same order, in the thread that drives the run; they push and return.
#include <memory>
#include <vector>

#include "mxtrain/device/process_group.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

class ReservedPlaces;  // by pushes, not yet started

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
  const std::shared_ptr<ProcessGroup> group_;
  const NDArray array_;
  const std::shared_ptr<ReservedPlaces> places_;
  engine::OprHandle all_reduce_ = nullptr;
};

// The sum of float64 arrays of equal shape, of all workers of all ranks, in each of them; pushed
// once per step. As PreparedAllReduce; a null group is one of a single rank.
class MXTRAIN_API PreparedPartSum {
 public:
  PreparedPartSum(std::shared_ptr<ProcessGroup> group, std::vector<NDArray> of_workers);
  ~PreparedPartSum();
  PreparedPartSum(const PreparedPartSum&) = delete;
  PreparedPartSum& operator=(const PreparedPartSum&) = delete;

  void Push();

 private:
  const std::shared_ptr<ProcessGroup> group_;
  const std::vector<NDArray> arrays_;
  const std::shared_ptr<ReservedPlaces> places_;
  engine::OprHandle sum_ = nullptr;
};

// Replaces the array by one rank's; every rank has the same shape, type and layout.
MXTRAIN_API void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array, int root = 0,
                           int priority = 0);
// `array` has equal parts, one per rank in their order; each rank provides its own.
MXTRAIN_API void AllGather(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority);

}  // namespace mxtrain
