// SPDX-License-Identifier: Apache-2.0
#pragma once
// The interface of a kind of device: memory, streams, layouts and their conversion. One per
// DeviceType, owned by Runtime. Every method may be called from any thread.
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/device/context.h"
#include "mxtrain/device/layout.h"

namespace mxtrain {

// Bytes; of the memory of every array and workspace.
inline constexpr int64_t kBufferAlignment = 64;

// A device as reported to users.
struct DeviceInfo {
  std::string name;   // "NVIDIA H200"
  int64_t bytes = 0;  // of memory
  int64_t free_bytes = 0;
  std::string capability;  // "9.0"
};
struct Version {
  std::string of, version;  // "cuDNN", "9.14.0"
};

class MXTRAIN_API Backend {
 public:
  virtual ~Backend() = default;

  virtual int DeviceCount() const = 0;
  // "" if usable, else a sentence that says how to get it.
  virtual std::string WhyAbsent() const = 0;
  virtual DeviceInfo Describe(int id) const { return (void)id, DeviceInfo{}; }
  virtual std::vector<Version> Versions() const { return {}; }  // of driver and libraries
  virtual int threads() const { return 1; }                     // size of the CPU's compute team
  // Why the device does not multiply this type, float16 or bfloat16, faster than float32, as the
  // end of a sentence; "" if it does. For the CPU's bfloat16 the answer comes from its library
  // (cpu/onednn/bfloat16.h).
  virtual std::string WhyNotFastIn(DType type, Context ctx) const {
    return (void)type, (void)ctx, "its processor has no fast arithmetic in it";
  }

  // Aligned to kBufferAlignment; null if the device is full.
  virtual void* Allocate(Context ctx, int64_t bytes) = 0;
  virtual void Free(Context ctx, void* data) = 0;
  virtual std::unique_ptr<Stream> NewStream(Context ctx, int priority) = 0;
  // Called once by every thread that will run kernels or create primitives of this device (sets the
  // OpenMP team of the calling thread).
  virtual void EnterThread() {}

  // Returns the unique object for this description.
  virtual Layout Intern(std::unique_ptr<LayoutDesc> desc) = 0;
  // Copies elements between layouts; both arrays are on this backend's devices. Fills the padding
  // of `to` with zeros.
  virtual void Reorder(RunContext ctx, const TensorSpec& from, const void* src,
                       const TensorSpec& to, void* dst) = 0;
  // Copies bytes; at least one side is on this backend's devices, the other may be host memory. On
  // a device with streams this and all other work is issued, not done, when the call returns; host
  // memory must stay valid until it is done.
  virtual void CopyBytes(RunContext ctx, Context from, const void* src, Context to, void* dst,
                         int64_t bytes) = 0;
  // Writes at most kMostPutBytes of host memory to one of this backend's devices. They are read
  // before the call returns, so the host may change them at once.
  virtual void PutBytes(RunContext ctx, const void* value, void* dst, int64_t bytes) = 0;
  static constexpr int64_t kMostPutBytes = 64;
  // Sets bytes on one of this backend's devices to zero.
  virtual void Zero(RunContext ctx, void* data, int64_t bytes) = 0;
};

// Throws kDevice with the backend's reason if there is no such device.
MXTRAIN_API void CheckDevice(const Backend& backend, Context ctx);

// 0: as many as the process may use.
MXTRAIN_API std::unique_ptr<Backend> NewCpuBackend(int threads);
// Loads the CUDA backend (gpu_library.h) at the first call of a method; without it: no devices, and
// the reason.
MXTRAIN_API std::unique_ptr<Backend> NewGpuBackend();

}  // namespace mxtrain
