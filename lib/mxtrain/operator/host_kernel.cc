// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/host_kernel.h"

#include <algorithm>
#include <numeric>
#include <set>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/cpu/parallel.h"
#include "mxtrain/operator/internal/best_plan.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {
namespace {

// Of a plain array.
template <typename Array>
int64_t BytesOf(const Array& array) {
  return Layout().Bytes(array.shape, array.type);
}

// Host memory for a list of arrays, and views of it during a call.
class HostArrays {
 public:
  HostArrays(Storage& storage, Context ctx, const std::vector<int64_t>& bytes) {
    for (const int64_t size : bytes) {
      const Storage::Handle handle = storage.Alloc(ctx, std::max<int64_t>(size, 0), "host kernel");
      memory_.emplace_back(handle.ptr, [&storage, handle](void*) { storage.Free(handle); });
    }
  }

  // Of the arrays that are given.
  void View(std::span<const TBlob> on_device) {
    blobs_.assign(on_device.begin(), on_device.end());
    for (size_t i = 0; i < blobs_.size(); ++i) {
      blobs_[i].data = on_device[i].data ? memory_[i].get() : nullptr;
      blobs_[i].ctx = Context::cpu();
    }
  }
  // Of plain bytes.
  void View(const std::vector<int64_t>& bytes) {
    blobs_.clear();
    for (size_t i = 0; i < bytes.size(); ++i)
      blobs_.push_back({memory_[i].get(), TShape{bytes[i]}, DType::kUint8, {}, Context::cpu()});
  }

  std::span<const TBlob> blobs() const { return blobs_; }
  void* at(size_t i) const { return memory_[i].get(); }

 private:
  std::vector<std::shared_ptr<void>> memory_;
  std::vector<TBlob> blobs_;
};

// What an operator needs in host memory, in bytes: a number for each array, 0 if it is not copied.
struct HostNeeds {
  std::vector<int64_t> in, out, aux, in_grad, saved;
  // Each kTempSpace, 0 for other requests; last, the workspace. kUnknownSize is kept.
  std::vector<int64_t> forward_scratch, backward_scratch;

  int64_t Copied() const {
    int64_t sum = 0;
    for (const auto* sizes : {&in, &out, &aux, &in_grad})
      sum = std::accumulate(sizes->begin(), sizes->end(), sum);
    return sum;
  }
};

// A kernel of the CPU between copies.
class HostOperator final : public Operator {
 public:
  HostOperator(std::unique_ptr<Operator> op, Runtime& runtime, Context device,
               const HostNeeds& needs, bool writes_aux)
      : op_(std::move(op)),
        device_(runtime.backend(device)),
        resources_(runtime.resources()),
        threads_(runtime.backend(Context::cpu()).threads()),
        writes_aux_(writes_aux),
        saved_bytes_(needs.saved),
        in_(runtime.storage(), Context::cpu_pinned(device.id), needs.in),
        out_(runtime.storage(), Context::cpu_pinned(device.id), needs.out),
        aux_(runtime.storage(), Context::cpu_pinned(device.id), needs.aux),
        out_grad_(runtime.storage(), Context::cpu_pinned(device.id),
                  needs.in_grad.empty() ? std::vector<int64_t>() : needs.out),
        in_grad_(runtime.storage(), Context::cpu_pinned(device.id), needs.in_grad),
        saved_(runtime.storage(), Context::cpu(), needs.saved),
        forward_scratch_(runtime.storage(), Context::cpu(), needs.forward_scratch),
        backward_scratch_(runtime.storage(), Context::cpu(), needs.backward_scratch),
        forward_scratch_bytes_(needs.forward_scratch),
        backward_scratch_bytes_(needs.backward_scratch) {}

  // The last copies to the device read this memory. (Those of a next call would follow them: a GPU
  // has one stream that computes.)
  ~HostOperator() override {
    try {
      Await();
    } catch (const Error&) {  // of a failed device, which reads nothing any more
    }
  }

  void Forward(const ForwardArgs& args) override {
    const RunContext& run = args.ctx.run_ctx;
    Begin(run);
    Read(run, args.in_data, &in_);
    ReadWritten(run, args.out_data, args.req, &out_);
    Read(run, args.aux_states, &aux_);
    const OpContext ctx = OnHost(args.ctx, forward_scratch_, forward_scratch_bytes_);
    AwaitIssued(run);
    const ResourceGrant grant(resources_, ctx.run_ctx, requested_);
    op_->Forward({ctx, in_.blobs(), req_, out_.blobs(), aux_.blobs()});
    Write(run, out_, args.out_data, args.req);
    if (writes_aux_) Write(run, aux_, args.aux_states);
    Record(run);
  }

  void Backward(const BackwardArgs& args) override {
    const RunContext& run = args.ctx.run_ctx;
    Begin(run);
    Read(run, args.out_grad, &out_grad_);
    Read(run, args.in_data, &in_);
    Read(run, args.out_data, &out_);
    ReadWritten(run, args.in_grad, args.req, &in_grad_);
    Read(run, args.aux_states, &aux_);
    const OpContext ctx = OnHost(args.ctx, backward_scratch_, backward_scratch_bytes_);
    AwaitIssued(run);
    const ResourceGrant grant(resources_, ctx.run_ctx, requested_);
    op_->Backward(
        {ctx, out_grad_.blobs(), in_.blobs(), out_.blobs(), req_, in_grad_.blobs(), aux_.blobs()});
    Write(run, in_grad_, args.in_grad, args.req);
    if (writes_aux_) Write(run, aux_, args.aux_states);
    Record(run);
  }

 private:
  // Enters the thread into a team of the size that the plan was made for: a worker of a GPU has a
  // team of one until its first host kernel, and nothing else in it uses more.
  void Begin(const RunContext& run) {
    if (TeamSize() != threads_) SetTeamSize(threads_);
    if (!event_ && run.stream) event_ = run.stream->NewEvent();
  }
  void Record(const RunContext& run) {
    if (!event_) return;  // no stream: the copies are done
    run.stream->Record(*event_);
    recorded_ = true;
  }
  void Await() {
    if (recorded_) event_->Wait();
  }
  void AwaitIssued(const RunContext& run) {
    Record(run);
    Await();
  }

  void Copy(const RunContext& run, const TBlob& from, const TBlob& to) {
    if (from.data && to.data)
      device_.CopyBytes(run, from.ctx, from.data, to.ctx, to.data, BytesOf(from));
  }
  void Read(const RunContext& run, std::span<const TBlob> on_device, HostArrays* host) {
    host->View(on_device);
    for (size_t i = 0; i < on_device.size(); ++i) Copy(run, on_device[i], host->blobs()[i]);
  }
  // What is written: only what is added to must be read. In place on the device is not in place
  // here.
  void ReadWritten(const RunContext& run, std::span<const TBlob> on_device,
                   std::span<const OpReqType> req, HostArrays* host) {
    host->View(on_device);
    req_.assign(req.begin(), req.end());
    for (size_t i = 0; i < on_device.size(); ++i) {
      if (req_[i] == OpReqType::kAddTo) Copy(run, on_device[i], host->blobs()[i]);
      if (req_[i] == OpReqType::kWriteInplace) req_[i] = OpReqType::kWriteTo;
    }
  }
  // Without `req`, all of them.
  void Write(const RunContext& run, const HostArrays& host, std::span<const TBlob> on_device,
             std::span<const OpReqType> req = {}) {
    for (size_t i = 0; i < on_device.size(); ++i) {
      if (req.empty() || req[i] != OpReqType::kNullOp) Copy(run, host.blobs()[i], on_device[i]);
    }
  }

  OpContext OnHost(const OpContext& on_device, const HostArrays& scratch,
                   const std::vector<int64_t>& scratch_bytes) {
    saved_.View(saved_bytes_);
    requested_.assign(on_device.requested.begin(), on_device.requested.end());
    for (size_t i = 0; i < requested_.size(); ++i) {
      requested_[i].random_on_device = nullptr;
      if (requested_[i].type != ResourceRequest::kTempSpace) continue;
      requested_[i].bytes = scratch_bytes[i];
      requested_[i].space = scratch.at(i);
    }
    const TBlob workspace = {scratch.at(scratch_bytes.size() - 1),
                             TShape{scratch_bytes.back()},
                             DType::kUint8,
                             {},
                             Context::cpu()};
    return {on_device.is_train, {Context::cpu(), nullptr}, requested_, saved_.blobs(),
            workspace,          on_device.scalar};
  }

  const std::unique_ptr<Operator> op_;
  Backend& device_;
  ResourceManager& resources_;
  const int threads_;
  const bool writes_aux_;
  const std::vector<int64_t> saved_bytes_;
  HostArrays in_, out_, aux_, out_grad_, in_grad_, saved_, forward_scratch_, backward_scratch_;
  const std::vector<int64_t> forward_scratch_bytes_, backward_scratch_bytes_;
  std::unique_ptr<Event> event_;  // after the last copies
  bool recorded_ = false;
  std::vector<OpReqType> req_;
  std::vector<Resource> requested_;
};

std::vector<int64_t> ScratchOf(const std::vector<ResourceRequest>& requests, int64_t workspace) {
  std::vector<int64_t> bytes;
  for (const ResourceRequest& request : requests)
    bytes.push_back(request.type == ResourceRequest::kTempSpace ? request.bytes : 0);
  bytes.push_back(workspace);
  return bytes;
}

HostNeeds NeedsOf(const OperatorProperty& property, const PlanRequest& request, const Plan& plan) {
  HostNeeds needs;
  std::vector<TShape> shapes;
  for (const TensorSpec& spec : request.in) shapes.push_back(spec.shape);
  for (const TensorSpec& spec : request.in) needs.in.push_back(BytesOf(spec));
  for (const TensorSpec& spec : request.out) needs.out.push_back(BytesOf(spec));
  for (const TensorSpec& spec : request.aux) needs.aux.push_back(BytesOf(spec));
  needs.forward_scratch = ScratchOf(property.ForwardResource(shapes), plan.forward_workspace);
  if (!request.needs_backward) return needs;
  for (size_t i = 0; i < request.in.size(); ++i) {
    TensorSpec gradient = request.in[i];
    if (!plan.grad_layout.empty() && plan.grad_layout[i]) gradient.type = plan.grad_layout[i]->type;
    const bool wanted = request.grad_req[i] != OpReqType::kNullOp;
    needs.in_grad.push_back(wanted ? BytesOf(gradient) : 0);
  }
  needs.saved = plan.saved;
  needs.backward_scratch = ScratchOf(property.BackwardResource(shapes), plan.backward_workspace);
  return needs;
}

bool AllPlain(const Plan& plan) {
  for (const auto* layouts : {&plan.in, &plan.out, &plan.aux}) {
    for (const Layout layout : *layouts) {
      if (!layout.plain()) return false;
    }
  }
  for (const auto& layout : plan.backward_in) {
    if (layout && !layout->plain()) return false;
  }
  for (const auto& stored : plan.grad_layout) {
    if (stored && !stored->layout.plain()) return false;
  }
  return true;
}

}  // namespace

Expected<Plan, Refusal> PlanOnHost(const OperatorProperty& property, const PlanRequest& request,
                                   Runtime& runtime, const HostPlanOptions& options) {
  const std::vector<std::optional<Layout>> in(request.in.size(), Layout()),
      aux(request.aux.size(), Layout());
  Backend& cpu = runtime.backend(Context::cpu());
  PlanRequest on_host = request;
  on_host.ctx = Context::cpu();
  on_host.threads = cpu.threads();
  on_host.in_layout = in;
  on_host.aux_layout = aux;
  const auto kernels = runtime.operators().Kernels(property.TypeString(), DeviceType::kCPU);
  const auto why_not = [&](const Plan& plan) -> std::string {
    if (options.reference && kernels.back()->name != plan.kernel) return "not the reference kernel";
    return AllPlain(plan) ? "" : "takes no plain arrays";
  };
  auto found = BestPlan(property, runtime.operators(), on_host, cpu, why_not);
  if (!found) {
    return Refusal{kernels.empty() ? "there is none for the CPU either"
                                   : format("none on the CPU: {}", join(found.error(), "; "))};
  }
  Plan plan = std::move(*found);
  const HostNeeds needs = NeedsOf(property, request, plan);
  plan.kernel = kHostKernel;
  plan.saved.clear();
  plan.forward_workspace = plan.backward_workspace = 0;
  plan.cost += MoveCost(static_cast<double>(needs.Copied()));
  plan.make = [make = std::move(plan.make), &runtime, device = request.ctx, needs,
               writes_aux = options.writes_aux] {
    return std::make_unique<HostOperator>(make(), runtime, device, needs, writes_aux);
  };
  return plan;
}

Plan PlanOnDevice(const OperatorProperty& property, const PlanRequest& request, Runtime& runtime,
                  const HostPlanOptions& options) {
  const OperatorRegistry& registry = runtime.operators();
  Backend& backend = runtime.backend(request.ctx);
  if (request.ctx.type != DeviceType::kGPU || runtime.options().strict_device)
    return property.CreatePlan(registry, request, backend);
  auto on_device = BestPlan(property, registry, request, backend);
  if (on_device) return std::move(*on_device);
  Expected<Plan, Refusal> on_host = PlanOnHost(property, request, runtime, options);
  if (on_host) return std::move(*on_host);
  std::vector<std::string> refusals = on_device.error();
  refusals.push_back(format("{}: {}", kHostKernel, on_host.error().reason));
  ThrowNoKernel(property.TypeString(), request, refusals);
}

void LogHostKernel(Runtime& runtime, Context ctx, const std::string& op, const std::string& layer) {
  struct Logged {
    Mutex mutex;
    std::set<std::string> operators MXTRAIN_GUARDED_BY(mutex);
  };
  const auto logged = std::static_pointer_cast<Logged>(
      runtime.Extension("host kernels", [] { return std::make_shared<Logged>(); }));
  {
    const MutexLock lock(logged->mutex);
    if (!logged->operators.insert(op).second) return;
  }
  const bool refused = !runtime.operators().Kernels(op, ctx.type).empty();
  runtime.log(layer.empty() ? "ndarray" : "executor")
      .Warning("operator {}{} has no kernel on {}{}; it runs on the CPU, with copies", op,
               layer.empty() ? "" : format(" ({})", layer), ctx.ToString(),
               refused ? " for these arrays" : "");
}

}  // namespace mxtrain
