// SPDX-License-Identifier: Apache-2.0
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/cuda/internal/cudnn_version.h"
#include "mxtrain/device/cuda/internal/device_scope.h"
#include "mxtrain/device/cuda/internal/nccl_version.h"
#include "mxtrain/device/cuda/internal/peer_access.h"
#include "mxtrain/device/cuda/internal/put_bytes.h"
#include "mxtrain/device/cuda/internal/reorder.h"
#include "mxtrain/device/cuda/internal/timed_event.h"

namespace mxtrain {
namespace {

constexpr const char* kUseCpu = "run with --device cpu";

// CUDA's version number 13020 is version 13.2.
std::string VersionText(int number) {
  return format("{}.{}", number / 1000, number % 1000 / 10);
}

int DriverVersion() {
  int version = 0;
  return cudaDriverGetVersion(&version) == cudaSuccess ? version : 0;  // 0: no driver
}

// The number of devices, or the reason why there is none.
struct Census {
  int devices = 0;
  std::string why_absent;
};

Census CountDevices() {
  Census census;
  const int driver = DriverVersion();
  const cudaError_t status = cudaGetDeviceCount(&census.devices);
  if (status == cudaSuccess && census.devices > 0) return census;
  census.devices = 0;
  if (driver == 0) {
    census.why_absent = format(
        "there is no NVIDIA driver (libcuda.so.1) on this machine; install it, or {}", kUseCpu);
  } else if (status == cudaErrorInsufficientDriver) {
    census.why_absent = format(
        "the NVIDIA driver supports CUDA {}, but this program needs {}; update the driver, or {}",
        VersionText(driver), VersionText(CUDART_VERSION), kUseCpu);
  } else if (status == cudaSuccess || status == cudaErrorNoDevice) {
    census.why_absent = format(
        "the NVIDIA driver shows no GPU (CUDA_VISIBLE_DEVICES hides GPUs that it does not list); "
        "{}",
        kUseCpu);
  } else {
    census.why_absent = format("the NVIDIA driver fails: {} ({}); {}", cudaGetErrorString(status),
                               cudaGetErrorName(status), kUseCpu);
  }
  return census;
}

class CudaBackend final : public Backend, public Borrower, public TimingBackend {
 public:
  int DeviceCount() const override { return census_.devices; }
  std::string WhyAbsent() const override { return census_.why_absent; }

  DeviceInfo Describe(int id) const override {
    cudaDeviceProp properties;
    MXTRAIN_CHECK_CUDA(cudaGetDeviceProperties(&properties, id));
    const cuda::DeviceScope scope(id);
    size_t free = 0, total = 0;
    MXTRAIN_CHECK_CUDA(cudaMemGetInfo(&free, &total));
    return {properties.name, static_cast<int64_t>(total), static_cast<int64_t>(free),
            format("{}.{}", properties.major, properties.minor)};
  }

  std::vector<Version> Versions() const override {
    int cublas[3] = {};
    cublasGetProperty(MAJOR_VERSION, &cublas[0]);
    cublasGetProperty(MINOR_VERSION, &cublas[1]);
    cublasGetProperty(PATCH_LEVEL, &cublas[2]);
    return {{"driver", DriverVersion() > 0 ? "for CUDA " + VersionText(DriverVersion()) : "none"},
            {"CUDA", VersionText(CUDART_VERSION)},
            {"cuBLAS", format("{}.{}.{}", cublas[0], cublas[1], cublas[2])},
            {"cuDNN", cuda::CudnnVersion()},
            {"NCCL", cuda::NcclVersion()}};
  }

  std::string WhyNotFastIn(DType type, Context ctx) const override {
    int major = 0;
    MXTRAIN_CHECK_CUDA(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, ctx.id));
    const int first = type == DType::kBfloat16 ? 8 : 7;  // generation whose matrix units support it
    return major >= first ? ""
                          : format("its compute capability is {}.x, and {} needs {}.0", major,
                                   NameOf(type), first);
  }

  void* Allocate(Context ctx, int64_t bytes) override {
    void* data = nullptr;
    const bool pinned = ctx.type == DeviceType::kCPUPinned;
    const cuda::DeviceScope scope(ctx.id);
    const cudaError_t status =
        pinned ? cudaHostAlloc(&data, static_cast<size_t>(bytes), cudaHostAllocPortable)
               : cudaMalloc(&data, static_cast<size_t>(bytes));
    if (status == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // clear the error: the caller may have memory to free
      return nullptr;
    }
    cuda::Check(status, pinned ? "cudaHostAlloc" : "cudaMalloc");
    return data;
  }

  // Ignores errors: they are those of a failed device, whose memory is freed with the process.
  void Free(Context ctx, void* data) override {
    cuda::OnDevice(
        ctx.id, [&] { ctx.type == DeviceType::kCPUPinned ? cudaFreeHost(data) : cudaFree(data); });
  }

  std::unique_ptr<Stream> NewStream(Context ctx, int priority) override {
    CheckDevice(*this, ctx);
    return std::make_unique<CudaStream>(ctx, priority, lender());
  }

  std::unique_ptr<TimedEvent> NewTimedEvent(Context ctx) override {
    return cuda::NewTimedEvent(ctx.id);
  }

  Layout Intern(std::unique_ptr<LayoutDesc> desc) override {
    const MutexLock lock(mutex_);
    std::string name = desc->Name();
    return Layout(layouts_.try_emplace(std::move(name), std::move(desc)).first->second.get());
  }

  void Reorder(RunContext ctx, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) override {
    cuda::Reorder(StreamOf(ctx), from, src, to, dst);
  }

  void CopyBytes(RunContext ctx, Context from, const void* src, Context to, void* dst,
                 int64_t bytes) override {
    if (bytes == 0) return;
    const auto size = static_cast<size_t>(bytes);
    cudaStream_t stream = StreamOf(ctx).get();
    if (from.type == DeviceType::kGPU && to.type == DeviceType::kGPU && from.id != to.id) {
      peers_.Between(from.id, to.id);  // with or without it the copy is right
      MXTRAIN_CHECK_CUDA(cudaMemcpyPeerAsync(dst, to.id, src, from.id, size, stream));
    } else {
      MXTRAIN_CHECK_CUDA(cudaMemcpyAsync(dst, src, size, cudaMemcpyDefault, stream));
    }
  }

  void PutBytes(RunContext ctx, const void* value, void* dst, int64_t bytes) override {
    cuda::PutBytes(StreamOf(ctx), value, dst, bytes);
  }

  void Zero(RunContext ctx, void* data, int64_t bytes) override {
    if (bytes == 0) return;
    MXTRAIN_CHECK_CUDA(cudaMemsetAsync(data, 0, static_cast<size_t>(bytes), StreamOf(ctx).get()));
  }

 private:
  const Census census_ = CountDevices();
  cuda::PeerAccess peers_;
  Mutex mutex_;
  // Descriptions are never removed.
  std::map<std::string, std::unique_ptr<LayoutDesc>> layouts_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace
}  // namespace mxtrain

// The entry point that device/gpu_backend.cc looks up in the CUDA backend.
extern "C" MXTRAIN_API mxtrain::Backend* mxtrain_new_cuda_backend() {
  return new mxtrain::CudaBackend;
}
