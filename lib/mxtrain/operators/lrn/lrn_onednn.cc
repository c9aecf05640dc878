// SPDX-License-Identifier: Apache-2.0
// LRN by oneDNN, over plain arrays; the hidden output comes from a separate loop.
#include "mxtrain/device/cpu/onednn/onednn.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/lrn/lrn_windows.h"

namespace mxtrain {
namespace {

using onednn::Arg;
using onednn::Descriptor;
using onednn::Primitive;

class LRNOneDnn final : public Operator {
 public:
  LRNOneDnn(const LRNParam& param, const Descriptor& forward,
            const std::optional<Descriptor>& backward)
      : param_(param), forward_(forward.Make()) {
    if (backward) backward_ = backward->Make();
  }

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    Map<float>(ctx.run_ctx, out[1], req[1],
               [windows = LRNWindows{param_, in[0].shape}, x = in[0].dptr<float>()](int64_t at) {
                 return windows.Norm(x, at);
               });
    if (req[0] == OpReqType::kNullOp) return;
    forward_->Execute({{Arg::kSrc, in[0].data},
                       {Arg::kDst, out[0].data},
                       {Arg::kWorkspace, Saved(ctx)},
                       {Arg::kScratchpad, ctx.workspace.data}});
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp) return;
    backward_->Execute({{Arg::kSrc, in[0].data},
                        {Arg::kDiffDst, out_grad[0].data},
                        {Arg::kDiffSrc, in_grad[0].data},
                        {Arg::kWorkspace, Saved(ctx)},
                        {Arg::kScratchpad, ctx.workspace.data}});
  }

 private:
  static void* Saved(const OpContext& ctx) {
    return ctx.saved.empty() ? nullptr : ctx.saved[0].data;
  }
  LRNParam param_;
  std::unique_ptr<Primitive> forward_, backward_;
};

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const LRNParam& param = static_cast<const LRNProperty&>(base).param();
  if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
  if (request.in[0].shape.Size() == 0) return Refusal{"empty array"};
  if (request.out_req[0] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  const onednn::LocalResponse record{
      {request.in[0].shape, Layout()}, param.nsize, param.alpha, param.beta, param.knorm,
      request.needs_backward};
  const onednn::Result forward = LocalResponseForward(backend, record);
  if (!forward) return forward.error();

  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = forward->scratchpad_bytes();
  std::optional<Descriptor> backward;
  if (request.needs_backward) {
    const onednn::Result result = LocalResponseBackward(backend, record);
    if (!result) return result.error();
    backward = *result;
    plan.accumulates = false;
    plan.backward_workspace = backward->scratchpad_bytes();
    plan.backward_reads = BackwardReads{{true, false}, {true}, {false, false}};
    if (forward->workspace_bytes() > 0) plan.saved = {forward->workspace_bytes()};
  }
  plan.make = [param, forward = *forward, backward] {
    return std::make_unique<LRNOneDnn>(param, forward, backward);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(lrn_onednn, registry) {
  registry.AddKernel({"LRN", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
