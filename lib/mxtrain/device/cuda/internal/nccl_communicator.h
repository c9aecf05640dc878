// SPDX-License-Identifier: Apache-2.0
#pragma once
// All-reduce between GPUs by NCCL. One thread issues the collectives of all GPUs of this process,
// as a group, so that their order is the same everywhere. The first GPU uses the caller's stream.
// Each other GPU has its own stream, which starts after the caller's and which the caller's waits
// for.
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "mxtrain/device/communicator.h"
#include "mxtrain/device/cuda/internal/nccl_group.h"

namespace mxtrain::cuda {

// The streams of the GPUs: CUDA's, or those of a test.
struct NcclStreams {
  std::unique_ptr<Stream> (*make)(Context device);
  cudaStream_t (*handle_of)(Stream& stream);
  // By the issuing thread; what it returns, by any: whether the work issued so far is done.
  std::function<bool()> (*mark)(Stream& stream);
};

class NcclCommunicator final : public Communicator {
 public:
  NcclCommunicator(std::unique_ptr<NcclGroup> group, std::span<const Context> devices,
                   const NcclStreams& streams);
  ~NcclCommunicator() override;

  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override;

 private:
  struct Other {
    std::unique_ptr<Stream> stream;
    std::unique_ptr<Event> ended;
  };
  const NcclStreams streams_;
  const std::unique_ptr<NcclGroup> group_;  // destroyed after the streams
  std::vector<Other> others_;
  std::unique_ptr<Event> begun_, ended_;  // of the first GPU's stream
};

}  // namespace mxtrain::cuda
