#pragma once
// What a kind of device offers: memory, streams, layouts and their conversion. One per DeviceType, owned by Runtime. Every method may be
// called from any thread.
#include <memory>
#include <string>

#include "mxtrain/device/context.h"
#include "mxtrain/device/layout.h"

namespace mxtrain {

class MXTRAIN_API Backend {
 public:
  virtual ~Backend() = default;

  virtual int DeviceCount() const = 0;
  virtual std::string WhyAbsent() const = 0;  // "" when usable, else a sentence that says how to get it
  virtual int threads() const { return 1; }   // size of the CPU's compute team

  virtual void* Allocate(Context ctx, int64_t bytes) = 0;  // 64-byte aligned; null when the device is full
  virtual void Free(Context ctx, void* data) = 0;
  virtual std::unique_ptr<Stream> NewStream(Context ctx, int priority) = 0;
  // Called once by every thread that will run kernels or make primitives of this device (sets the OpenMP team of the calling thread).
  virtual void EnterThread() {}

  // Returns the one object that stands for this description.
  virtual Layout Intern(std::unique_ptr<LayoutDesc> desc) = 0;
  // Copies elements between layouts; both on this backend's devices. Writes the padding of `to` as zeros.
  virtual void Reorder(RunContext ctx, const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) = 0;
  // Moves bytes; at least one side is on this backend's devices, the other may be host memory.
  virtual void CopyBytes(RunContext ctx, Context from, const void* src, Context to, void* dst, int64_t bytes) = 0;
};

// Throws kDevice with the backend's reason when it has no such device.
MXTRAIN_API void CheckDevice(const Backend& backend, Context ctx);

MXTRAIN_API std::unique_ptr<Backend> NewCpuBackend(int threads);  // 0: as many as the process may use
MXTRAIN_API std::unique_ptr<Backend> NewGpuBackend();             // in a build without CUDA: no devices, and the reason

}  // namespace mxtrain
