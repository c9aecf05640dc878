#pragma once
// Sums between the devices of one process. On GPUs that is NCCL, which the GPU half opens when a communicator is first asked for.
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/context.h"

namespace mxtrain {

class MXTRAIN_API Communicator {
 public:
  virtual ~Communicator() = default;  // waits for what was issued

  // Puts the sum of `data`, an array of n elements on each device in the order of the devices, into every one of them: the same bits in all.
  // Issued on ctx.stream, one of the first device: it begins after what was issued there before, and what follows it there finds the sums on
  // all devices. One thread at a time, always with the same stream.
  virtual void AllReduce(RunContext ctx, DType type, std::span<void* const> data, int64_t n) = 0;
};

// Throws kDevice with the reason where these devices, of which none stands twice, have no way to sum.
using CommunicatorFactory = std::function<std::unique_ptr<Communicator>(std::span<const Context> devices)>;

MXTRAIN_API std::unique_ptr<Communicator> NewGpuCommunicator(std::span<const Context> devices);

}  // namespace mxtrain
