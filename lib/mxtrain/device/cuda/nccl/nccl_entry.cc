// SPDX-License-Identifier: Apache-2.0
// The entry point that device/gpu_communicator.cc looks up in the CUDA backend.
#include <unistd.h>

#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/cuda/internal/nccl_communicator.h"
#include "mxtrain/device/cuda/stream.h"
#include "mxtrain/device/rank_gpus.h"

namespace mxtrain {
namespace {

// An event of CUDA that a watching thread may ask.
class Mark {
 public:
  explicit Mark(CudaStream& stream) : device_(stream.ctx().id) {
    const cuda::DeviceScope scope(device_);
    MXTRAIN_CHECK_CUDA(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming));
    MXTRAIN_CHECK_CUDA(cudaEventRecord(event_, stream.get()));
  }
  ~Mark() {
    cuda::OnDevice(device_, [this] { cudaEventDestroy(event_); });
  }
  Mark(const Mark&) = delete;
  Mark& operator=(const Mark&) = delete;

  // Also if the device failed, as whoever waits for its work is told.
  bool Ended() const { return cudaEventQuery(event_) != cudaErrorNotReady; }

 private:
  const int device_;
  cudaEvent_t event_ = nullptr;
};

constexpr cuda::NcclStreams kCudaStreams{
    [](Context device) -> std::unique_ptr<Stream> {
      const cuda::DeviceScope scope(device.id);
      return std::make_unique<CudaStream>(device, /*priority=*/1);
    },
    [](Stream& stream) { return static_cast<CudaStream&>(stream).get(); },
    [](Stream& stream) -> std::function<bool()> {
      return [mark = std::make_shared<Mark>(static_cast<CudaStream&>(stream))] {
        return mark->Ended();
      };
    }};

// As nvidia-smi shows it, and where it is: "GPU-8f6b..., 0000:41:00.0 on node7".
std::string IdentityOf(int id) {
  cudaDeviceProp properties;
  MXTRAIN_CHECK_CUDA(cudaGetDeviceProperties(&properties, id));
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof properties.uuid.bytes; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    text += format("{:02x}", static_cast<unsigned char>(properties.uuid.bytes[i]));
  }
  char host[256] = {};
  gethostname(host, sizeof host - 1);
  return format("{}, {:04x}:{:02x}:{:02x}.0 on {}", text, properties.pciDomainID,
                properties.pciBusID, properties.pciDeviceID, host);
}

RankGpus OrderGpusOf(ProcessGroup& processes, const std::vector<int>& ids) {
  std::vector<std::string> identities;
  std::string failure;
  try {
    cuda::RequireNccl();
    for (int id : ids) identities.push_back(IdentityOf(id));
  } catch (const Error& e) {
    failure = e.what();
  }
  return OrderGpus(processes, identities, failure);
}

}  // namespace
}  // namespace mxtrain

extern "C" MXTRAIN_API mxtrain::Communicator* mxtrain_new_nccl_communicator(
    std::span<const mxtrain::Context> devices, std::shared_ptr<mxtrain::ProcessGroup> processes) {
  using mxtrain::cuda::NcclGroup;
  std::vector<int> ids;
  for (const mxtrain::Context device : devices) ids.push_back(device.id);
  std::unique_ptr<NcclGroup> group;
  if (processes) {
    const mxtrain::RankGpus gpus = mxtrain::OrderGpusOf(*processes, ids);
    group =
        std::make_unique<NcclGroup>(mxtrain::cuda::RequireNccl(), ids, gpus, std::move(processes));
  } else {
    group = std::make_unique<NcclGroup>(mxtrain::cuda::RequireNccl(), ids);
  }
  return new mxtrain::cuda::NcclCommunicator(std::move(group), devices, mxtrain::kCudaStreams);
}
