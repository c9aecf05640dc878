// SPDX-License-Identifier: Apache-2.0
// Means over windows by oneDNN if its window definition matches; its maxima drop a NaN. Output and
// gradient have the layout of the data.
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/pooling/pooling.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using onednn::Descriptor;
using onednn::Primitive;

class PoolingOneDnn final : public Operator {
 public:
  PoolingOneDnn(const Descriptor& forward, const std::optional<Descriptor>& backward)
      : forward_(forward.Make()) {
    if (backward) backward_ = backward->Make();
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    forward_->Execute({{Arg::kSrc, args.in_data[0].data},
                       {Arg::kDst, args.out_data[0].data},
                       {Arg::kScratchpad, args.ctx.workspace.data}});
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    backward_->Execute({{Arg::kDiffDst, args.out_grad[0].data},
                        {Arg::kDiffSrc, args.in_grad[0].data},
                        {Arg::kScratchpad, args.ctx.workspace.data}});
  }

 private:
  std::unique_ptr<Primitive> forward_, backward_;
};

// Why oneDNN's windows differ from ours; "" if they match.
std::string WhyNot(const PoolingParam& param, const PlanRequest& request, const PoolingAxes& axes) {
  if (std::string why = onednn::WhyNotType(request.in[0].type); !why.empty()) return why;
  if (request.in[0].shape.Size() == 0) return "empty array";
  if (request.out_req[0] == OpReqType::kAddTo) return "kAddTo of the output is not supported";
  if (param.pool_type == PoolingParam::kMax) return "its maximum drops a NaN";
  if (param.pool_type != PoolingParam::kAvg) return "avg only";
  for (const PoolingAxis& axis : {axes.d, axes.h, axes.w}) {
    if (axis.Start(axis.out - 1) >= axis.in) return "a window without a real cell";
    if (axis.Overhang() >= axis.kernel) return "a window without a real cell";
    if (param.count_include_pad.value_or(true) && axis.Overhang() > axis.pad)
      return "a different divisor for windows beyond the padding";
  }
  return "";
}

onednn::Pooling Describe(const PoolingParam& param, const PlanRequest& request,
                         const PoolingAxes& axes) {
  onednn::Pooling p;
  const Layout layout = request.in_layout[0].value_or(Layout());
  p.src = {request.in[0].shape, layout, request.in[0].type};
  p.dst = {request.out[0].shape, layout, request.out[0].type};
  p.with_padding = param.count_include_pad.value_or(true);
  const auto of_each = [&](auto f) {
    const int64_t all[] = {f(axes.d), f(axes.h), f(axes.w)};
    const auto count = static_cast<size_t>(request.in[0].shape.ndim() - 2);
    return TShape(std::span(all).last(count));
  };
  p.kernel = of_each([](const PoolingAxis& a) { return a.kernel; });
  p.stride = of_each([](const PoolingAxis& a) { return a.stride; });
  p.pad_before = of_each([](const PoolingAxis& a) { return a.pad; });
  p.pad_after = of_each([](const PoolingAxis& a) { return std::max(a.pad, a.Overhang()); });
  p.training = request.needs_backward;
  return p;
}

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const PoolingParam& param = static_cast<const PoolingProperty&>(base).param();
  const TShape &in = request.in[0].shape, &out = request.out[0].shape;
  const PoolingAxes axes = AxesOf(param, in, out);
  if (std::string why = WhyNot(param, request, axes); !why.empty()) return Refusal{why};
  const onednn::Pooling record = Describe(param, request, axes);
  const onednn::Result forward = PoolingForward(backend, record);
  if (!forward) return forward.error();

  Plan plan = PlainPlan(base, request);
  plan.in[0] = *record.src.layout;
  plan.out[0] = Canonical(out, *record.dst.layout);
  plan.forward_workspace = forward->scratchpad_bytes();
  std::optional<Descriptor> backward;
  if (request.needs_backward) {
    const onednn::Result result = PoolingBackward(backend, record);
    if (!result) return result.error();
    backward = *result;
    plan.accumulates = false;
    plan.backward_workspace = backward->scratchpad_bytes();
    plan.backward_reads = BackwardReads{{true}, {false}, {false}};
  }
  plan.make = [forward = *forward, backward] {
    return std::make_unique<PoolingOneDnn>(forward, backward);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(pooling_onednn, registry) {
  registry.AddKernel({"Pooling", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
