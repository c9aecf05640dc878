// The GPU in a build without CUDA: every name exists, no device does.
#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"

namespace mxtrain {
namespace {

class NoGpu final : public Backend {
 public:
  int DeviceCount() const override { return 0; }
  std::string WhyAbsent() const override {
    return "this version of mxtrain computes on the CPU only; run with --device cpu";
  }
  void* Allocate(Context ctx, int64_t) override { Refuse(ctx); }
  void Free(Context ctx, void*) override { Refuse(ctx); }
  std::unique_ptr<Stream> NewStream(Context ctx, int) override { Refuse(ctx); }
  Layout Intern(std::unique_ptr<LayoutDesc>) override { Refuse(Context::gpu()); }
  void Reorder(RunContext ctx, const TensorSpec&, const void*, const TensorSpec&, void*) override { Refuse(ctx.ctx); }
  void CopyBytes(RunContext ctx, Context, const void*, Context, void*, int64_t) override { Refuse(ctx.ctx); }

 private:
  [[noreturn]] void Refuse(Context ctx) const {
    CheckDevice(*this, ctx);
    Throw(ErrorKind::kBug, "a build without CUDA was asked for {}", ctx.ToString());
  }
};

}  // namespace

std::unique_ptr<Backend> NewGpuBackend() { return std::make_unique<NoGpu>(); }

}  // namespace mxtrain
