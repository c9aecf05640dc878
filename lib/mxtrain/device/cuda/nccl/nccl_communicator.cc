// SPDX-License-Identifier: Apache-2.0
// All-reduce between the GPUs of one process, by NCCL. One thread issues the collectives of all
// devices, as a group, so that their order is the same everywhere. The first device uses the
// caller's stream. Each other device has its own stream, which starts after the caller's and which
// the caller's waits for.
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/cuda/internal/nccl.h"
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain {
namespace {

ncclDataType_t NcclTypeOf(DType type) {
  switch (type) {
    case DType::kFloat32:
      return ncclFloat32;
    case DType::kFloat64:
      return ncclFloat64;
    case DType::kFloat16:
      return ncclFloat16;
    case DType::kBfloat16:
      return ncclBfloat16;
    default:
      Throw(ErrorKind::kDevice, "GPUs sum only floating-point types, not {}", NameOf(type));
  }
}

// The communicator of each device, in order.
class NcclGroup {
 public:
  NcclGroup(const cuda::Nccl& nccl, const std::vector<int>& ids)
      : nccl_(nccl), members_(ids.size()) {
    nccl_.Check(nccl_.CommInitAll(members_.data(), static_cast<int>(ids.size()), ids.data()),
                "ncclCommInitAll");
  }
  // Ignores errors: they are those of a failed device.
  ~NcclGroup() {
    for (ncclComm_t member : members_) nccl_.CommDestroy(member);
  }
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;

  void AllReduce(std::span<void* const> data, int64_t n, ncclDataType_t type,
                 std::span<const cudaStream_t> streams) const {
    nccl_.Check(nccl_.GroupStart(), "ncclGroupStart");
    ncclResult_t failed = ncclSuccess;
    for (size_t i = 0; i < members_.size() && failed == ncclSuccess; ++i) {
      failed = nccl_.AllReduce(data[i], data[i], static_cast<size_t>(n), type, ncclSum, members_[i],
                               streams[i]);
    }
    const ncclResult_t ended = nccl_.GroupEnd();  // also after a failure: the group is open
    nccl_.Check(failed, "ncclAllReduce");
    nccl_.Check(ended, "ncclGroupEnd");
  }

 private:
  const cuda::Nccl& nccl_;
  std::vector<ncclComm_t> members_;
};

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
    others_.clear();
    try {
      if (ended_) ended_->Wait();
    } catch (const Error&) {  // already reported to whoever waited for that work
    }
  }

  void AllReduce(RunContext ctx, DType type, std::span<void* const> data, int64_t n) override {
    if (n == 0) return;
    CudaStream& first = StreamOf(ctx);
    if (!begun_) begun_ = first.NewEvent();
    first.Record(*begun_);
    std::vector<cudaStream_t> streams{first.get()};
    for (Other& other : others_) {
      other.stream->WaitFor(*begun_);
      streams.push_back(other.stream->get());
    }
    group_.AllReduce(data, n, NcclTypeOf(type), streams);
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

  const NcclGroup group_;  // destroyed after the streams
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
