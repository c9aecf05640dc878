// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/imperative.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/math.h"
#include "mxtrain/base/philox.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/ndarray/device_times.h"
#include "mxtrain/ndarray/random_stream.h"
#include "mxtrain/operator/composite.h"
#include "mxtrain/operator/internal/imperative_plan.h"
#include "mxtrain/operator/internal/run_ahead.h"

namespace mxtrain {
namespace {

using imperative::Call;
using imperative::CallPlan;
using imperative::RunAhead;

thread_local CallListener* this_threads_listener = nullptr;

// Runtime and device of a call. All its arrays must share them.
Call MakeCall(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> aux,
              std::span<const NDArray> out, OpReqType req, const CallParams& params) {
  const NDArray* first = nullptr;
  for (std::span<const NDArray> arrays : {in, aux, out}) {
    for (const NDArray& array : arrays) {
      if (array.empty()) Throw(ErrorKind::kConfig, "{} got an empty array; allocate it first", op);
      if (!first) first = &array;
      if (&array.runtime() != &first->runtime())
        Throw(ErrorKind::kConfig, "{} got arrays of two runtimes; use one", op);
      if (array.ctx() != first->ctx()) {
        Throw(ErrorKind::kConfig, "{} got arrays on {} and {}; copy one of them first", op,
              first->ctx().ToString(), array.ctx().ToString());
      }
    }
  }
  if (!first)
    Throw(ErrorKind::kConfig, "{} takes no input; use InvokeInto with an output array", op);
  const OpReqType planned = req == OpReqType::kWriteInplace ? OpReqType::kWriteTo : req;
  Call call{op, params, in, aux, out, planned, first->runtime(), first->ctx()};
  call.is_train = this_threads_listener != nullptr;
  return call;
}

[[noreturn]] void RefuseOverlap(std::string_view op, const char* what) {
  Throw(ErrorKind::kConfig, "{}: {} share memory", op, what);
}

void CheckOutputs(std::string_view op, std::span<const NDArray> out) {
  for (size_t i = 0; i < out.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (out[i].Overlaps(out[j])) RefuseOverlap(op, "two outputs");
    }
  }
}

// One call to the engine: the arrays that the operator gets, and its resources.
class Invocation {
 public:
  // `draws`: none for the next numbers of calls. `keeps_states`: works on copies of the auxiliary
  // states.
  Invocation(const Call& call, std::shared_ptr<CallPlan> plan,
             const std::optional<CallDraws>& draws = {}, bool keeps_states = false)
      : plan_(std::move(plan)), runtime_(call.runtime), ctx_(call.ctx) {
    if (plan_->takes_scalar()) scalar_ = call.params.Scalar();
    for (size_t i = 0; i < call.in.size(); ++i)
      in_.push_back(call.in[i].ToLayout(plan_->plan().in[i]));
    for (size_t i = 0; i < call.aux.size(); ++i) {
      const NDArray aux = keeps_states ? call.aux[i].Copy(ctx_) : call.aux[i];
      aux_.push_back(aux.ToLayout(plan_->plan().aux[i]));
    }
    for (size_t i = 0; i < plan_->out().size(); ++i) AddOutput(call, i);
    CheckOverlaps();
    AddScratch(draws);
  }

  const std::vector<NDArray>& in() const { return in_; }
  const std::vector<NDArray>& out() const { return out_; }
  const std::vector<NDArray>& aux() const { return aux_; }
  bool draws() const { return draws_; }
  // The variables that a push depends on.
  struct Vars {
    std::vector<engine::VarHandle> reads, writes, renews;
  };
  Vars ListVars() const;
  engine::PushOptions Options(int priority, const Vars& vars) const;
  void Push(int priority);
  void Run(RunContext run_ctx);

 private:
  void AddOutput(const Call& call, size_t i);
  void BreakAlias(size_t output);
  void CheckOverlaps() const;
  void AddScratch(const std::optional<CallDraws>& draws);

  std::shared_ptr<CallPlan> plan_;
  Runtime& runtime_;
  Context ctx_;
  std::vector<NDArray> in_, aux_, out_;
  std::vector<OpReqType> req_;
  std::optional<double> scalar_;
  // The workspace, then each kTempSpace of known size and, on a GPU, the random state.
  int64_t scratch_bytes_ = 0;
  std::vector<int64_t> space_at_;  // byte offset in these of each request
  RandomState random_;
  uint64_t stream_ = 0;  // of the first request of random numbers
  bool draws_ = false;

  // State of Run, reused by the next one.
  std::vector<TBlob> in_blobs_, out_blobs_, aux_blobs_;
  std::vector<Resource> requested_;
};

void Invocation::AddOutput(const Call& call, size_t i) {
  const TensorSpec& spec = plan_->out()[i];
  const bool visible = static_cast<int>(i) < plan_->num_visible();
  if (!visible || call.out.empty()) {
    out_.emplace_back(runtime_, spec.shape, spec.type, ctx_, spec.layout, plan_->name());
    req_.push_back(OpReqType::kWriteTo);
    return;
  }
  out_.push_back(call.out[i].ToLayout(spec.layout));
  req_.push_back(call.req);
  BreakAlias(i);
}

// An input that shares bytes with an output is read from a copy, unless the kernel works in place
// there.
void Invocation::BreakAlias(size_t output) {
  const std::vector<InplacePair>& granted = plan_->plan().forward_inplace;
  for (size_t i = 0; i < in_.size(); ++i) {
    if (!in_[i].Overlaps(out_[output]) || req_[output] == OpReqType::kNullOp) continue;
    const InplacePair pair{static_cast<int>(i), static_cast<int>(output)};
    const bool may_share = std::find(granted.begin(), granted.end(), pair) != granted.end();
    if (may_share && req_[output] == OpReqType::kWriteTo && in_[i].SameView(out_[output])) {
      req_[output] = OpReqType::kWriteInplace;
    } else {
      in_[i] = in_[i].Copy(ctx_);
    }
  }
}

void Invocation::CheckOverlaps() const {
  const auto refuse = [this](const char* what) { RefuseOverlap(plan_->name(), what); };
  CheckOutputs(plan_->name(), out_);
  for (size_t i = 0; i < aux_.size(); ++i) {
    auto meets = [&](const NDArray& array) { return array.Overlaps(aux_[i]); };
    if (std::any_of(out_.begin(), out_.end(), meets)) refuse("an output and an auxiliary state");
    if (std::any_of(in_.begin(), in_.end(), meets)) refuse("an argument and an auxiliary state");
    if (std::any_of(aux_.begin(), aux_.begin() + static_cast<std::ptrdiff_t>(i), meets))
      refuse("two auxiliary states");
  }
}

void Invocation::AddScratch(const std::optional<CallDraws>& draws) {
  int64_t bytes = RoundUp(plan_->plan().forward_workspace, kBufferAlignment);
  for (const ResourceRequest& request : plan_->resources()) {
    space_at_.push_back(bytes);
    if (request.type == ResourceRequest::kTempSpace)
      bytes += RoundUp(std::max<int64_t>(request.bytes, 0), kBufferAlignment);
    if (request.type != ResourceRequest::kRandom) continue;
    draws_ = true;
    if (ctx_.type == DeviceType::kGPU) bytes += RoundUp(kRandomStateBytes, kBufferAlignment);
  }
  scratch_bytes_ = bytes;
  if (!draws_) return;
  random_ = draws ? draws->state : runtime_.resources().NextCall();
  stream_ = StreamOf(draws ? draws->name : plan_->name());
}

void Invocation::Run(RunContext run_ctx) {
  ResourceManager& resources = runtime_.resources();
  if (draws_) resources.CountRandomRun(ctx_);
  SpaceLease lease;
  char* scratch = nullptr;
  if (scratch_bytes_ > 0) {
    lease = resources.TakeSpace(run_ctx);
    scratch = static_cast<char*>(lease->Get(scratch_bytes_, plan_->name()));
  }
  requested_.clear();
  int draws = 0;  // requests of random numbers
  for (size_t i = 0; i < plan_->resources().size(); ++i) {
    const ResourceRequest& request = plan_->resources()[i];
    Resource& resource = requested_.emplace_back();
    resource.type = request.type;
    resource.who = plan_->name();
    if (request.type == ResourceRequest::kRandom) {
      resource.random = &random_;
      resource.stream = StreamAmong(stream_, /*net=*/0, draws++);
      if (ctx_.type == DeviceType::kGPU) {
        void* const on_device = scratch + space_at_[i];
        runtime_.backend(ctx_).PutBytes(run_ctx, &random_, on_device, kRandomStateBytes);
        resource.random_on_device = static_cast<const RandomState*>(on_device);
      }
    } else {
      resource.bytes = request.bytes;
      if (request.bytes > 0) resource.space = scratch + space_at_[i];
    }
  }
  const ResourceGrant grant(resources, run_ctx, requested_);
  const auto blobs = [](const std::vector<NDArray>& arrays, std::vector<TBlob>* to) {
    to->clear();
    for (const NDArray& array : arrays) to->push_back(array.data());
  };
  blobs(in_, &in_blobs_);
  blobs(out_, &out_blobs_);
  blobs(aux_, &aux_blobs_);
  const int64_t workspace = plan_->plan().forward_workspace;
  OpContext ctx;
  ctx.is_train = plan_->is_train();
  ctx.run_ctx = run_ctx;
  ctx.requested = requested_;
  ctx.workspace = {workspace > 0 ? scratch : nullptr, TShape{workspace}, DType::kUint8, {}, ctx_};
  ctx.scalar = scalar_;
  std::unique_ptr<Operator> op = plan_->Borrow();
  const auto forward = [&] { op->Forward({ctx, in_blobs_, req_, out_blobs_, aux_blobs_}); };
  if (run_ctx.stream) {
    DeviceTimesOf(runtime_).Measure(plan_->name(), run_ctx, forward);
  } else {
    forward();
  }
  plan_->Return(std::move(op));
}

Invocation::Vars Invocation::ListVars() const {
  Vars vars;
  for (const NDArray& array : in_) vars.reads.push_back(array.var());
  for (size_t i = 0; i < out_.size(); ++i) {
    const engine::VarHandle var = out_[i].var();
    const bool read = std::find(vars.reads.begin(), vars.reads.end(), var) != vars.reads.end();
    if (req_[i] == OpReqType::kWriteTo && out_[i].IsWhole() && !read) vars.renews.push_back(var);
    vars.writes.push_back(var);
  }
  for (const NDArray& array : aux_) vars.writes.push_back(array.var());
  engine::DeduplicateVars(&vars.reads, &vars.writes);
  return vars;
}

engine::PushOptions Invocation::Options(int priority, const Vars& vars) const {
  return {.ctx = ctx_, .priority = priority, .name = plan_->name(), .renews = vars.renews};
}

void Invocation::Push(int priority) {
  const Vars vars = ListVars();
  runtime_.engine().PushSync(
      [self = *this, ticket = RunAhead::Of(runtime_).Enter(runtime_.engine())](
          RunContext run_ctx) mutable { self.Run(run_ctx); },
      vars.reads, vars.writes, Options(priority, vars));
}

std::vector<NDArray> Start(const Call& call, int priority);

// Runs the steps of a composite that its visible outputs need.
std::vector<NDArray> StartLowered(const Call& call, const CallPlan& plan, int priority) {
  CheckOutputs(call.op, call.out);
  if (call.req == OpReqType::kNullOp) return {call.out.begin(), call.out.end()};
  const Lowering& graph = *plan.lowered();
  const std::vector<Lowering::Value> outputs(graph.outputs().begin(),
                                             graph.outputs().begin() + plan.num_visible());
  std::vector<bool> needed(graph.steps().size());
  const auto need = [&](Lowering::Value value) {
    if (value.step >= 0) needed[static_cast<size_t>(value.step)] = true;
  };
  std::for_each(outputs.begin(), outputs.end(), need);
  for (size_t i = graph.steps().size(); i-- > 0;) {
    if (needed[i]) std::for_each(graph.steps()[i].in.begin(), graph.steps()[i].in.end(), need);
  }
  std::vector<std::vector<NDArray>> of_step(graph.steps().size());
  const auto array_of = [&](Lowering::Value value) {
    return value.step < 0
               ? call.in[static_cast<size_t>(value.output)]
               : of_step[static_cast<size_t>(value.step)].at(static_cast<size_t>(value.output));
  };
  for (size_t i = 0; i < graph.steps().size(); ++i) {
    if (!needed[i]) continue;
    std::vector<NDArray> in;
    for (const Lowering::Value value : graph.steps()[i].in) in.push_back(array_of(value));
    const CallParams params(graph.steps()[i].kwargs);
    of_step[i] =
        Start(MakeCall(graph.steps()[i].op, in, {}, {}, OpReqType::kWriteTo, params), priority);
  }
  std::vector<NDArray> out;
  for (const Lowering::Value value : outputs) {
    const NDArray array = array_of(value);
    // An argument that is an output is copied: the caller may write to it, and so may the other
    // outputs below.
    out.push_back(value.step < 0 ? Invoke("_copy", {&array, 1})[0] : array);
  }
  for (size_t i = 0; i < call.out.size(); ++i) {
    InvokeInto("_copy", {&out[i], 1}, {&call.out[i], 1}, call.req, {}, {}, priority);
    out[i] = call.out[i];
  }
  return out;
}

// Tells this thread's listener of one call, and nobody of the calls inside it.
class Announcement {
 public:
  Announcement(const Call& call, const CallPlan& plan)
      : listener_(SetCallListener(nullptr)),
        kwargs_(listener_ ? call.params.ToKwargs() : Kwargs()),
        call_{plan.name(), kwargs_, call.in, call.aux, call.out, call.req, Draws(plan)} {}
  ~Announcement() { SetCallListener(listener_); }
  Announcement(const Announcement&) = delete;
  Announcement& operator=(const Announcement&) = delete;

  // Whether the call keeps its auxiliary states.
  bool Before() const { return listener_ && listener_->BeforeCall(call_); }
  std::optional<CallDraws> OwnDraws() const {
    return listener_ && call_.draws ? listener_->DrawsOf(call_) : std::nullopt;
  }
  void After(std::span<const NDArray> results) {
    if (call_.out.empty()) call_.out = results;
    if (listener_) listener_->AfterCall(call_);
  }

 private:
  static bool Draws(const CallPlan& plan) {
    return std::any_of(plan.resources().begin(), plan.resources().end(), [](const auto& request) {
      return request.type == ResourceRequest::kRandom;
    });
  }

  CallListener* const listener_;
  const Kwargs kwargs_;  // empty without a listener
  InvokedCall call_;
};

// Pushes the call and returns its visible outputs.
std::vector<NDArray> Start(const Call& call, int priority) {
  const std::shared_ptr<CallPlan> plan = imperative::PlanOf(call);
  if (plan->lowered()) return StartLowered(call, *plan, priority);
  Announcement announcement(call, *plan);
  const bool keeps_states = announcement.Before();
  Invocation invocation(call, plan, announcement.OwnDraws(), keeps_states);
  invocation.Push(priority);
  // Converted outputs are copied back to the caller's arrays.
  for (size_t i = 0; i < call.aux.size() && !keeps_states; ++i)
    NDArray(call.aux[i]).CopyFrom(invocation.aux()[i]);
  for (size_t i = 0; i < call.out.size(); ++i) {
    if (call.req != OpReqType::kNullOp) NDArray(call.out[i]).CopyFrom(invocation.out()[i]);
  }
  std::vector<NDArray> out = invocation.out();
  out.resize(static_cast<size_t>(plan->num_visible()));
  announcement.After(out);
  return out;
}

}  // namespace

CallParams::CallParams(const Kwargs& kwargs) {
  params_.reserve(kwargs.size());
  for (const auto& [name, value] : kwargs) params_.push_back({name, value});
}

std::optional<double> CallParams::Scalar() const {
  if (params_.size() != 1 || params_[0].name != "scalar") return {};
  if (const auto* number = std::get_if<double>(&params_[0].value)) return *number;
  if (const auto* integer = std::get_if<int64_t>(&params_[0].value))
    return static_cast<double>(*integer);
  return {};
}

Kwargs CallParams::ToKwargs() const {
  Kwargs kwargs;
  kwargs.reserve(params_.size());
  for (const CallParam& param : params_) {
    kwargs.emplace_back(
        param.name,
        std::visit([](const auto& value) { return params::Print(value); }, param.value));
  }
  return kwargs;
}

CallListener* SetCallListener(CallListener* listener) {
  return std::exchange(this_threads_listener, listener);
}

std::vector<NDArray> Invoke(std::string_view op, std::span<const NDArray> in,
                            const CallParams& params, std::span<const NDArray> aux) {
  return Start(MakeCall(op, in, aux, {}, OpReqType::kWriteTo, params), 0);
}

void InvokeInto(std::string_view op, std::span<const NDArray> in, std::span<const NDArray> out,
                OpReqType req, const CallParams& params, std::span<const NDArray> aux,
                int priority) {
  if (out.empty()) Throw(ErrorKind::kConfig, "{}: InvokeInto needs output arrays", op);
  Start(MakeCall(op, in, aux, out, req, params), priority);
}

// Two pushes of one call write the same arrays, so they never run at the same time.
struct PreparedCall::Impl {
  std::string op;
  std::vector<NDArray> in, out, aux;
  OpReqType req;
  CallParams params;
  std::optional<Invocation> invocation;  // empty: each push does all the work of a call
  Invocation::Vars vars;

  void Prepare() {
    Call call = MakeCall(op, in, aux, out, req, params);
    call.is_train = false;  // as its pushes without a listener
    const std::shared_ptr<CallPlan> plan = imperative::PlanOf(call);
    if (plan->lowered()) return;
    const auto lie_as = [](const std::vector<NDArray>& arrays, const auto& layout_of) {
      for (size_t i = 0; i < arrays.size(); ++i) {
        if (arrays[i].layout() != layout_of(i)) return false;
      }
      return true;
    };
    if (!lie_as(in, [&](size_t i) { return plan->plan().in[i]; }) ||
        !lie_as(out, [&](size_t i) { return plan->out()[i].layout; }) ||
        !lie_as(aux, [&](size_t i) { return plan->plan().aux[i]; })) {
      return;
    }
    Invocation once(call, plan);
    // Because it overlaps an output.
    const auto copied = [&](size_t i) { return !once.in()[i].SameView(in[i]); };
    for (size_t i = 0; i < in.size(); ++i) {
      if (copied(i)) return;
    }
    if (once.draws()) return;
    vars = once.ListVars();
    invocation.emplace(std::move(once));
  }
};

PreparedCall::PreparedCall(std::string_view op, std::span<const NDArray> in,
                           std::span<const NDArray> out, OpReqType req, const CallParams& params,
                           std::span<const NDArray> aux)
    : impl_(std::make_shared<Impl>()) {
  impl_->op = op;
  impl_->in.assign(in.begin(), in.end());
  impl_->out.assign(out.begin(), out.end());
  impl_->aux.assign(aux.begin(), aux.end());
  impl_->req = req;
  impl_->params = params;
  impl_->Prepare();
}

void PreparedCall::Push(int priority) const {
  if (!impl_->invocation || this_threads_listener)
    return InvokeInto(impl_->op, impl_->in, impl_->out, impl_->req, impl_->params, impl_->aux,
                      priority);
  impl_->out[0].runtime().engine().PushSync(
      [impl = impl_](RunContext run_ctx) { impl->invocation->Run(run_ctx); }, impl_->vars.reads,
      impl_->vars.writes, impl_->invocation->Options(priority, impl_->vars));
}

bool PreparedCall::Takes(std::span<const NDArray> in) const {
  return std::equal(in.begin(), in.end(), impl_->in.begin(), impl_->in.end(),
                    [](const NDArray& a, const NDArray& b) { return a.SameView(b); });
}

}  // namespace mxtrain
