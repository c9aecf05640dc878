// SPDX-License-Identifier: Apache-2.0
// All-reduce between the GPUs of one process, by NCCL. One thread issues the collectives of all
// devices, as a group, so that their order is the same everywhere. The first device uses the
// caller's stream. Each other device has its own stream, which starts after the caller's and which
// the caller's waits for.
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/cuda/internal/nccl_group.h"
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain {
namespace {

// For the sums that are issued when a communicator is destroyed.
constexpr std::chrono::seconds kPatience{60};

class NcclCommunicator final : public Communicator {
 public:
  explicit NcclCommunicator(std::span<const Context> devices)
      : group_(cuda::RequireNccl(), IdsOf(devices)) {
    for (const Context device : devices.subspan(1)) {
      const cuda::DeviceScope scope(device.id);
      Other& other = others_.emplace_back();
      other.stream = std::make_unique<CudaStream>(device, /*priority=*/1);
      other.ended = other.stream->NewEvent();
    }
  }
  ~NcclCommunicator() override {
    group_.End(kPatience, [this] {
      others_.clear();
      try {
        if (ended_) ended_->Wait();
      } catch (const Error&) {  // already reported to whoever waited for that work
      }
    });
  }

  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override {
    CudaStream& first = StreamOf(ctx);
    if (!begun_) begun_ = first.NewEvent();
    first.Record(*begun_);
    std::vector<cudaStream_t> streams{first.get()};
    for (Other& other : others_) {
      other.stream->WaitFor(*begun_);
      streams.push_back(other.stream->get());
    }
    group_.AllReduce(arrays, streams);
    for (Other& other : others_) {
      other.stream->Record(*other.ended);
      first.WaitFor(*other.ended);
    }
    if (!ended_) ended_ = first.NewEvent();
    first.Record(*ended_);
  }

 private:
  struct Other {
    std::unique_ptr<CudaStream> stream;
    std::unique_ptr<Event> ended;
  };
  static std::vector<int> IdsOf(std::span<const Context> devices) {
    std::vector<int> ids;
    for (const Context device : devices) ids.push_back(device.id);
    return ids;
  }

  cuda::NcclGroup group_;  // destroyed after the streams
  std::vector<Other> others_;
  std::unique_ptr<Event> begun_, ended_;  // of the first device's stream
};

}  // namespace
}  // namespace mxtrain

// The entry point that device/gpu_communicator.cc looks up in the CUDA backend.
extern "C" MXTRAIN_API mxtrain::Communicator* mxtrain_new_nccl_communicator(
    std::span<const mxtrain::Context> devices) {
  return new mxtrain::NcclCommunicator(devices);
}
