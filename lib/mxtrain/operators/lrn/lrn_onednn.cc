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

  void Forward(const ForwardArgs& args) override {
    Map<float>(args.ctx.run_ctx, args.out_data[1], args.req[1],
               [windows = LRNWindows{param_, args.in_data[0].shape},
                x = args.in_data[0].dptr<float>()](int64_t at) { return windows.Norm(x, at); });
    if (args.req[0] == OpReqType::kNullOp) return;
    forward_->Execute({{Arg::kSrc, args.in_data[0].data},
                       {Arg::kDst, args.out_data[0].data},
                       {Arg::kWorkspace, Saved(args.ctx)},
                       {Arg::kScratchpad, args.ctx.workspace.data}});
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    backward_->Execute({{Arg::kSrc, args.in_data[0].data},
                        {Arg::kDiffDst, args.out_grad[0].data},
                        {Arg::kDiffSrc, args.in_grad[0].data},
                        {Arg::kWorkspace, Saved(args.ctx)},
                        {Arg::kScratchpad, args.ctx.workspace.data}});
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
