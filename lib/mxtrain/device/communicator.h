// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums between the devices of one process. GPUs use NCCL, which the CUDA backend loads when a
// communicator is first requested.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/context.h"

namespace mxtrain {

// An array of n elements on each device, in the order of the devices.
struct ArrayOnEach {
  DType type = DType::kFloat32;
  std::vector<void*> data;
  int64_t n = 0;
};

class MXTRAIN_API Communicator {
 public:
  virtual ~Communicator() = default;  // waits for issued work

  // All-reduce: replaces each of the arrays by its sum over the devices, with the same bits on all
  // devices; they travel together. Issued on ctx.stream of the first device: it starts after
  // earlier work there, and later work there sees the sums on all devices. One thread at a time,
  // always with the same stream.
  virtual void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) = 0;
};

// `devices` has no duplicates. Throws kDevice with the reason if they cannot sum.
using CommunicatorFactory =
    std::function<std::unique_ptr<Communicator>(std::span<const Context> devices)>;

MXTRAIN_API std::unique_ptr<Communicator> NewGpuCommunicator(std::span<const Context> devices);

}  // namespace mxtrain
