// SPDX-License-Identifier: Apache-2.0
#pragma once
// Collectives of a group of processes as engine operations on arrays. All ranks call them in the
// same order, in the thread that drives the run; they push and return. The place of a collective in
// the order of all is that of its push. If the data of one fail to be computed, the group fails.
#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include "mxtrain/device/process_group.h"
#include "mxtrain/ndarray/ndarray.h"

namespace mxtrain {

// Of the last collective that was given it (base/clock.h).
struct FlightTimes {
  std::atomic<int64_t> ready{0}, done{0};
};

// Replaces the array, in host memory, by its sum over the ranks, padding included: keep it zero.
MXTRAIN_API void AllReduce(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority,
                           std::shared_ptr<FlightTimes> times = nullptr);
// Replaces each of the float64 arrays of equal shape by the sum of all, of all workers of all
// ranks. A null group is one of a single rank.
MXTRAIN_API void SumOverParts(const std::shared_ptr<ProcessGroup>& group,
                              std::vector<NDArray> of_workers);
// Replaces the array by one rank's; every rank has the same shape, type and layout. On a GPU it
// travels through host memory.
MXTRAIN_API void Broadcast(const std::shared_ptr<ProcessGroup>& group, NDArray array, int root = 0,
                           int priority = 0);
// `array` has equal parts, one per rank in their order; each rank provides its own.
MXTRAIN_API void AllGather(const std::shared_ptr<ProcessGroup>& group, NDArray array, int priority,
                           std::shared_ptr<FlightTimes> times = nullptr);

}  // namespace mxtrain
