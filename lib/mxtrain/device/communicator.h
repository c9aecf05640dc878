// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums between the devices of one process, or of several (ranks). GPUs use NCCL, which the CUDA
// backend loads when a communicator is first requested.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/context.h"
#include "mxtrain/device/process_group.h"

namespace mxtrain {

// An array of n elements on each device of this process, in the order of the devices.
struct ArrayOnEach {
  DType type = DType::kFloat32;
  std::vector<void*> data;
  int64_t n = 0;
};

class MXTRAIN_API Communicator {
 public:
  virtual ~Communicator() = default;  // waits for issued work

  // All-reduce: replaces each of the arrays by its sum over the devices, those of all ranks, with
  // the same bits on all devices; they travel together. Issued on ctx.stream of the first device:
  // it starts after earlier work there, and later work there sees the sums on all devices of this
  // process. One thread at a time, always with the same stream; ranks in the same order.
  virtual void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) = 0;
};

// `devices` has no duplicates. Throws kDevice with the reason if they cannot sum.
using CommunicatorFactory =
    std::function<std::unique_ptr<Communicator>(std::span<const Context> devices)>;

// With a group, between the GPUs of all its ranks, which call this together: throws kUsage if two
// ranks have the same GPU. If the group fails, sums end without a result, and later ones throw
// kRankLost; if a sum fails, so does the group.
MXTRAIN_API std::unique_ptr<Communicator> NewGpuCommunicator(
    std::span<const Context> devices, std::shared_ptr<ProcessGroup> group = nullptr);

}  // namespace mxtrain
