// SPDX-License-Identifier: Apache-2.0
// The GPU of every build: loads the CUDA backend on first use, and forwards to it or reports why
// there is none.
#include <dlfcn.h>

#include <mutex>

#include "mxtrain/base/error.h"
#include "mxtrain/device/gpu_library.h"
#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/device/memory_lender.h"
#include "mxtrain/device/timed_event.h"

namespace mxtrain {
namespace {

class GpuBackend final : public ChoosingBackend, public Borrower, public TimingBackend {
 public:
  int DeviceCount() const override { return Find() ? Find()->DeviceCount() : 0; }
  std::string WhyAbsent() const override { return Find() ? Find()->WhyAbsent() : why_absent_; }
  DeviceInfo Describe(int id) const override { return Get(Context::gpu(id)).Describe(id); }
  std::vector<Version> Versions() const override {
    return Find() ? Find()->Versions() : std::vector<Version>{};
  }
  std::string WhyNotFastIn(DType type, Context ctx) const override {
    return Get(ctx).WhyNotFastIn(type, ctx);
  }
  void* Allocate(Context ctx, int64_t bytes) override { return Get(ctx).Allocate(ctx, bytes); }
  void Free(Context ctx, void* data) override { Get(ctx).Free(ctx, data); }
  std::unique_ptr<Stream> NewStream(Context ctx, int priority) override {
    return Get(ctx).NewStream(ctx, priority);
  }
  std::unique_ptr<TimedEvent> NewTimedEvent(Context ctx) override {
    auto* timing = dynamic_cast<TimingBackend*>(&Get(ctx));
    MXTRAIN_ASSERT(timing);
    return timing->NewTimedEvent(ctx);
  }
  Layout Intern(std::unique_ptr<LayoutDesc> desc) override {
    return Get(Context::gpu()).Intern(std::move(desc));
  }
  void Reorder(RunContext ctx, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) override {
    Get(ctx.ctx).Reorder(ctx, from, src, to, dst);
  }
  void CopyBytes(RunContext ctx, Context from, const void* src, Context to, void* dst,
                 int64_t bytes) override {
    Get(ctx.ctx).CopyBytes(ctx, from, src, to, dst, bytes);
  }
  void PutBytes(RunContext ctx, const void* value, void* dst, int64_t bytes) override {
    Get(ctx.ctx).PutBytes(ctx, value, dst, bytes);
  }
  void Zero(RunContext ctx, void* data, int64_t bytes) override {
    Get(ctx.ctx).Zero(ctx, data, bytes);
  }

 private:
  // Null if the CUDA backend could not be loaded.
  Backend* Find() const {
    std::call_once(opened_, [this] {
      const GpuLibrary library = OpenGpuLibrary();
      why_absent_ = library.why_absent;
      if (!library.handle) return;
      auto* make =
          reinterpret_cast<Backend* (*)()>(dlsym(library.handle, "mxtrain_new_cuda_backend"));
      if (!make)
        Throw(ErrorKind::kDevice,
              "{} is not a CUDA backend of mxtrain: symbol mxtrain_new_cuda_backend is missing",
              library.path);
      backend_.reset(make());
      if (auto* borrower = dynamic_cast<Borrower*>(backend_.get())) borrower->BorrowFrom(lender());
    });
    return backend_.get();
  }
  Backend& Get(Context ctx) const {
    if (Find()) return *Find();
    CheckDevice(*this, ctx);
    Throw(ErrorKind::kBug, "{} requested on a machine without GPUs", ctx.ToString());
  }

  mutable std::once_flag opened_;
  mutable std::unique_ptr<Backend> backend_;
  mutable std::string why_absent_;
};

}  // namespace

std::unique_ptr<Backend> NewGpuBackend() {
  return std::make_unique<GpuBackend>();
}

}  // namespace mxtrain
