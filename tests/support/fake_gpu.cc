// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_gpu.h"

#include <array>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/device/kernel_choices.h"
#include "mxtrain/device/memory_lender.h"
#include "mxtrain/operator/plans.h"
#include "tests/support/fake_rank_gpus.h"
#include "tests/support/fake_stream.h"

namespace mxtrain::test {
namespace {

constexpr int kDevices = 2;
constexpr int kCudnnRank = 100;  // convolution_by_library.h; the other kernels of a GPU rank last
// An address outside the process: reading it faults.
constexpr uintptr_t kFar = uintptr_t{1} << 62;

void* ToDevice(void* data) {
  return data ? reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(data) + kFar) : nullptr;
}
template <typename T>
T* ToHost(T* data) {
  return data ? reinterpret_cast<T*>(reinterpret_cast<uintptr_t>(data) - kFar) : nullptr;
}

std::vector<TBlob> ToHost(std::span<const TBlob> blobs) {
  std::vector<TBlob> translated(blobs.begin(), blobs.end());
  for (TBlob& blob : translated) blob.data = ToHost(blob.data);
  return translated;
}

// CUDA leaves open what a copy between overlapping ranges gives.
void RequireApart(const void* a, int64_t a_bytes, const void* b, int64_t b_bytes) {
  const auto before = [](const void* first, int64_t bytes, const void* second) {
    return reinterpret_cast<uintptr_t>(first) + static_cast<uintptr_t>(bytes) <=
           reinterpret_cast<uintptr_t>(second);
  };
  if (!before(a, a_bytes, b) && !before(b, b_bytes, a))
    Throw(ErrorKind::kBug, "a GPU copy has overlapping ranges");
}

class FakeGpu final : public ChoosingBackend, public Borrower, public TimingBackend {
 public:
  explicit FakeGpu(int64_t memory) : memory_(memory) {}
  int DeviceCount() const override { return kDevices; }
  std::string WhyAbsent() const override { return ""; }
  DeviceInfo Describe(int id) const override {
    const std::lock_guard lock(mutex_);
    return {"a fake GPU", memory_, memory_ - used_.at(static_cast<size_t>(id)), "9.0"};
  }
  std::string WhyNotFastIn(DType, Context) const override { return ""; }
  void* Allocate(Context ctx, int64_t bytes) override {
    const bool on_gpu = ctx.type == DeviceType::kGPU;
    if (on_gpu && !Reserve(ctx.id, bytes)) return nullptr;
    void* data = nullptr;
    if (posix_memalign(&data, 64, static_cast<size_t>(bytes)) != 0) return nullptr;
    std::memset(data, 0xcd, static_cast<size_t>(bytes));  // detects code that relies on zeros
    if (!on_gpu) return data;
    const std::lock_guard lock(mutex_);
    sizes_[ToDevice(data)] = bytes;
    return ToDevice(data);
  }
  void Free(Context ctx, void* data) override {
    if (ctx.type != DeviceType::kGPU) return std::free(data);
    const std::lock_guard lock(mutex_);
    used_.at(static_cast<size_t>(ctx.id)) -= sizes_.at(data);
    sizes_.erase(data);
    std::free(ToHost(data));
  }
  std::unique_ptr<Stream> NewStream(Context, int) override {
    return std::make_unique<FakeStream>(++streams_, true);
  }
  std::unique_ptr<TimedEvent> NewTimedEvent(Context) override {
    return std::make_unique<FakeEvent>();
  }
  Layout Intern(std::unique_ptr<LayoutDesc> desc) override { return cpu_->Intern(std::move(desc)); }
  void Reorder(RunContext ctx, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) override {
    RequireApart(src, from.Bytes(), dst, to.Bytes());
    Do(ctx, [cpu = cpu_.get(), from, src = ToHost(src), to, dst = ToHost(dst)] {
      SetTeamSize(1);
      cpu->Reorder({}, from, src, to, dst);
    });
  }
  void CopyBytes(RunContext ctx, Context from, const void* src, Context to, void* dst,
                 int64_t bytes) override {
    RequireApart(src, bytes, dst, bytes);
    if (from.type == DeviceType::kGPU) src = ToHost(src);
    if (to.type == DeviceType::kGPU) dst = ToHost(dst);
    if (bytes == 0) return;  // there may be no memory
    Do(ctx, [src, dst, bytes] { std::memcpy(dst, src, static_cast<size_t>(bytes)); });
  }
  void PutBytes(RunContext ctx, const void* value, void* dst, int64_t bytes) override {
    const auto* from = static_cast<const char*>(value);
    Do(ctx, [copy = std::vector<char>(from, from + bytes), dst = ToHost(dst)] {
      std::memcpy(dst, copy.data(), copy.size());
    });
  }
  void Zero(RunContext ctx, void* data, int64_t bytes) override {
    if (bytes == 0) return;
    Do(ctx, [data = ToHost(data), bytes] { std::memset(data, 0, static_cast<size_t>(bytes)); });
  }

 private:
  bool Reserve(int id, int64_t bytes) {
    const std::lock_guard lock(mutex_);
    int64_t& used = used_.at(static_cast<size_t>(id));
    if (bytes > memory_ - used) return false;
    used += bytes;
    return true;
  }

  const int64_t memory_;
  const std::unique_ptr<Backend> cpu_ = NewCpuBackend(1);
  std::atomic<uint32_t> streams_{0};
  mutable std::mutex mutex_;
  std::array<int64_t, kDevices> used_{};  // guarded by mutex_, as sizes_
  std::map<void*, int64_t> sizes_;
};

template <typename T>
void SumOnEach(const std::vector<void*>& data, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    float sum = static_cast<T*>(data[0])[i];
    for (size_t p = 1; p < data.size(); ++p)
      sum = static_cast<T>(sum + static_cast<float>(static_cast<T*>(data[p])[i]));
    for (void* part : data) static_cast<T*>(part)[i] = static_cast<T>(sum);
  }
}

class FakeCommunicator final : public Communicator {
 public:
  void AllReduce(RunContext ctx, std::span<const ArrayOnEach> arrays) override {
    for (const auto& [type, data, n] : arrays) {
      if (type != DType::kFloat32 && type != DType::kBfloat16)
        Throw(ErrorKind::kDevice, "fake GPUs sum float32 and bfloat16, not {}", NameOf(type));
      std::vector<void*> parts;
      for (void* part : data) parts.push_back(ToHost(static_cast<char*>(part)));
      Do(ctx, [parts = std::move(parts), n = n,
               sum = type == DType::kFloat32 ? SumOnEach<float> : SumOnEach<bfloat16>] {
        sum(parts, n);
      });
    }
  }
};

// The context of a kernel when it runs, which is later.
struct LateContext {
  explicit LateContext(const OpContext& ctx)
      : is_train(ctx.is_train),
        requested(ctx.requested.begin(), ctx.requested.end()),
        saved(ToHost(ctx.saved)),
        workspace(ctx.workspace),
        scalar(ctx.scalar) {
    workspace.data = ToHost(workspace.data);
    for (Resource& resource : requested) {
      resource.space = ToHost(resource.space);
      resource.random = nullptr;  // host memory: a kernel of a device cannot read it
      resource.random_on_device = ToHost(resource.random_on_device);
    }
  }
  OpContext Make() {
    SetTeamSize(1);
    return {is_train, RunContext(), requested, saved, workspace, scalar};
  }

  bool is_train;
  std::vector<Resource> requested;
  std::vector<TBlob> saved;
  TBlob workspace;
  std::optional<double> scalar;
};

// A CPU kernel that a stream runs.
class FakeGpuOperator final : public Operator {
 public:
  explicit FakeGpuOperator(std::shared_ptr<Operator> op) : op_(std::move(op)) {}

  void Forward(const ForwardArgs& args) override {
    Do(
        args.ctx.run_ctx,
        [op = op_, late = LateContext(args.ctx), in = ToHost(args.in_data), req = Copy(args.req),
         out = ToHost(args.out_data), aux = ToHost(args.aux_states)]() mutable {
          op->Forward({late.Make(), in, req, out, aux});
        },
        SecondsOf(args.req, args.out_data));
  }
  void Backward(const BackwardArgs& args) override {
    Do(
        args.ctx.run_ctx,
        [op = op_, late = LateContext(args.ctx), out_grad = ToHost(args.out_grad),
         in = ToHost(args.in_data), out = ToHost(args.out_data), req = Copy(args.req),
         in_grad = ToHost(args.in_grad), aux = ToHost(args.aux_states)]() mutable {
          op->Backward({late.Make(), out_grad, in, out, req, in_grad, aux});
        },
        SecondsOf(args.req, args.in_grad));
  }

 private:
  static std::vector<OpReqType> Copy(std::span<const OpReqType> req) {
    return {req.begin(), req.end()};
  }
  static double SecondsOf(std::span<const OpReqType> req, std::span<const TBlob> written) {
    double seconds = 0;
    for (size_t i = 0; i < req.size(); ++i) {
      if (req[i] != OpReqType::kNullOp)
        seconds += kFakeSecondsPerElement * static_cast<double>(written[i].Size());
    }
    return seconds;
  }

  const std::shared_ptr<Operator> op_;
};

PlanFn OnFakeGpu(PlanFn plan_on_cpu) {
  return [plan_on_cpu = std::move(plan_on_cpu)](const OperatorProperty& property,
                                                const PlanRequest& request,
                                                Backend& backend) -> Expected<Plan, Refusal> {
    Expected<Plan, Refusal> plan = plan_on_cpu(property, request, backend);
    if (plan)
      plan->make = [make = plan->make] { return std::make_unique<FakeGpuOperator>(make()); };
    return plan;
  };
}

// Adds a fake GPU kernel for each CPU kernel. Not for the chain of element-wise operators, which
// the CUDA backend does not have: its kernel runs others itself.
void AddFakeGpuKernels(const std::string& op, OperatorRegistry* registry) {
  if (op == "_ElementwiseChain") return;
  for (const KernelEntry* kernel : registry->Kernels(op, DeviceType::kCPU)) {
    registry->AddKernel(
        {op, DeviceType::kGPU, kernel->name, kernel->rank, OnFakeGpu(kernel->plan)});
  }
}

std::shared_ptr<OperatorRegistry> FakeGpuOperators(const std::set<std::string>& without = {}) {
  std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  for (const std::string& op : registry->Names()) {
    if (!without.contains(op)) AddFakeGpuKernels(op, registry.get());
  }
  return registry;
}

// One kernel that chooses among the CPU kernels that accept the request.
PlanFn ChosenKernel(std::vector<KernelEntry> kernels, FakeStopwatch seconds_of) {
  return [kernels = std::move(kernels), seconds_of = std::move(seconds_of)](
             const OperatorProperty& property, const PlanRequest& request,
             Backend& backend) -> Expected<Plan, Refusal> {
    std::vector<Plan> plans;
    std::vector<std::string> names;
    for (const KernelEntry& kernel : kernels) {
      Expected<Plan, Refusal> plan = OnFakeGpu(kernel.plan)(property, request, backend);
      if (!plan) continue;
      plans.push_back(std::move(*plan));
      names.push_back(kernel.name);
    }
    if (plans.empty()) return Refusal{"no CPU kernel accepts the request"};
    const std::string key =
        format("{} of {}{}{}, out of {}; a fake GPU", property.TypeString(),
               request.in[0].shape.ToString(), request.needs_backward ? ", with gradient" : "",
               request.deterministic ? ", deterministic" : "", join(names, " "));
    KernelChoices::Stopwatch watch = [&](size_t i) {
      return std::optional(seconds_of(key, names[i]));
    };
    if (request.deterministic) watch = {};
    return std::move(plans[ChoicesOf(backend)->Choose(key, names, watch)]);
  };
}

std::shared_ptr<OperatorRegistry> ChoosingOperators(const FakeStopwatch& seconds_of) {
  std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  for (const std::string& op : registry->Names()) {
    if (op != "Activation" && op != "SoftmaxOutput") {
      AddFakeGpuKernels(op, registry.get());
      continue;
    }
    std::vector<KernelEntry> kernels;
    for (const KernelEntry* kernel : registry->Kernels(op, DeviceType::kCPU))
      kernels.push_back(*kernel);
    registry->AddKernel(
        {op, DeviceType::kGPU, "chosen", kRefRank, ChosenKernel(std::move(kernels), seconds_of)});
  }
  return registry;
}

// Adapts an operator of plain arrays to arrays in other layouts.
class PlainInside final : public Operator {
 public:
  explicit PlainInside(std::unique_ptr<Operator> op) : op_(std::move(op)) {}

  void Forward(const ForwardArgs& args) override {
    Plain inputs(args.in_data), outputs(args.out_data);
    op_->Forward({args.ctx, inputs.blobs, args.req, outputs.blobs, args.aux_states});
    outputs.PutBack(args.out_data);
  }
  void Backward(const BackwardArgs& args) override {
    Plain heads(args.out_grad), inputs(args.in_data), outputs(args.out_data),
        gradients(args.in_grad);
    op_->Backward({args.ctx, heads.blobs, inputs.blobs, outputs.blobs, args.req, gradients.blobs,
                   args.aux_states});
    gradients.PutBack(args.in_grad);
  }

 private:
  static void Reorder(const TensorSpec& from, const void* src, const TensorSpec& to, void* dst) {
    static const std::unique_ptr<Backend> host = NewCpuBackend(1);
    host->Reorder({}, from, src, to, dst);
  }
  static TensorSpec SpecOf(const TBlob& blob) { return {blob.shape, blob.type, blob.layout}; }

  // Copies, including the previous contents.
  struct Plain {
    explicit Plain(std::span<const TBlob> arrays)
        : blobs(arrays.begin(), arrays.end()), bytes(arrays.size()) {
      for (size_t i = 0; i < blobs.size(); ++i) {
        if (!blobs[i].data) continue;
        blobs[i].layout = Layout();
        bytes[i].resize(static_cast<size_t>(SpecOf(blobs[i]).Bytes()));
        blobs[i].data = bytes[i].data();
        Reorder(SpecOf(arrays[i]), arrays[i].data, SpecOf(blobs[i]), blobs[i].data);
      }
    }
    void PutBack(std::span<const TBlob> arrays) const {
      for (size_t i = 0; i < blobs.size(); ++i) {
        if (blobs[i].data)
          Reorder(SpecOf(blobs[i]), blobs[i].data, SpecOf(arrays[i]), arrays[i].data);
      }
    }
    std::vector<TBlob> blobs;
    std::vector<std::vector<char>> bytes;
  };

  const std::unique_ptr<Operator> op_;
};

// As the engines of cuDNN that do a part of the work of batch norms.
PlanFn OfFloat16(PlanFn plan) {
  return [plan = std::move(plan)](const OperatorProperty& property, const PlanRequest& request,
                                  Backend& backend) -> Expected<Plan, Refusal> {
    if (request.in[0].type != DType::kFloat16) return Refusal{"float16 only"};
    return plan(property, request, backend);
  };
}

PlanFn ChannelsLastOutside(PlanFn plain_plan) {
  return [plain_plan = std::move(plain_plan)](const OperatorProperty& property,
                                              const PlanRequest& request,
                                              Backend& backend) -> Expected<Plan, Refusal> {
    Expected<Plan, Refusal> plan = plain_plan(property, request, backend);
    if (!plan) return plan;
    LieAs(backend.Intern(NewChannelsLast(request.out[0].shape.ndim())), property, request, &*plan);
    plan->make = [make = plan->make] { return std::make_unique<PlainInside>(make()); };
    return plan;
  };
}

std::shared_ptr<OperatorRegistry> ChannelsLastOperators() {
  std::shared_ptr<OperatorRegistry> registry = BuiltinOperators();
  for (const std::string& op : registry->Names()) {
    const auto kernels = registry->Kernels(op, DeviceType::kCPU);
    if (kernels.empty() || op == "_ElementwiseChain") continue;  // not available on the GPU
    const bool shares = op == "_ConvolutionWithBatchNorm",
               convolution = shares || op == "Convolution" || op == "_ConvolutionActivation";
    PlanFn plan = kernels.back()->plan;
    if (convolution) plan = ChannelsLastOutside(std::move(plan));
    if (shares) plan = OfFloat16(std::move(plan));
    registry->AddKernel({op, DeviceType::kGPU, "last", convolution ? kCudnnRank : kRefRank,
                         OnFakeGpu(std::move(plan))});
  }
  return registry;
}

std::unique_ptr<Runtime> NewRuntimeOn(std::shared_ptr<const OperatorRegistry> operators,
                                      const std::string& engine, uint64_t seed,
                                      int64_t memory = std::numeric_limits<int64_t>::max()) {
  RuntimeOptions options;
  options.engine = engine;
  options.threads = 1;
  options.seed = seed;
  options.new_gpu_backend = [memory] { return NewFakeGpuBackend(memory); };
  return std::make_unique<Runtime>(options, std::move(operators));
}

}  // namespace

std::unique_ptr<Backend> NewFakeGpuBackend(int64_t memory) {
  return std::make_unique<FakeGpu>(memory);
}

std::unique_ptr<Runtime> NewSmallGpuRuntime(int64_t memory) {
  return NewRuntimeOn(nullptr, "threaded", 3, memory);
}

void* HostAddressOf(void* on_gpu) {
  return ToHost(static_cast<char*>(on_gpu));
}

std::unique_ptr<Communicator> NewFakeCommunicator(std::span<const Context>) {
  return std::make_unique<FakeCommunicator>();
}

std::unique_ptr<Runtime> NewFakeGpuRuntime(const std::string& engine, uint64_t seed) {
  static const std::shared_ptr<OperatorRegistry> registry = FakeGpuOperators();
  return NewRuntimeOn(registry, engine, seed);
}

std::unique_ptr<Runtime> NewFakeGpuRuntimeWithout(
    const std::set<std::string>& operators, RuntimeOptions options,
    const std::function<void(OperatorRegistry*)>& add) {
  options.threads = 1;
  options.new_gpu_backend = [] { return NewFakeGpuBackend(); };
  const std::shared_ptr<OperatorRegistry> registry = FakeGpuOperators(operators);
  if (add) add(registry.get());
  return std::make_unique<Runtime>(options, registry);
}

std::unique_ptr<Runtime> NewChannelsLastRuntime() {
  static const std::shared_ptr<OperatorRegistry> registry = ChannelsLastOperators();
  return NewRuntimeOn(registry, "threaded", 3);
}

std::unique_ptr<Runtime> NewChoosingRuntime(FakeStopwatch seconds_of, const std::string& engine,
                                            uint64_t seed) {
  return NewRuntimeOn(ChoosingOperators(seconds_of), engine, seed);
}

}  // namespace mxtrain::test
