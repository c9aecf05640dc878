// SPDX-License-Identifier: Apache-2.0
// LRN by oneDNN, over plain arrays, without a backward pass; the hidden output comes from a
// separate loop.
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
  LRNOneDnn(const LRNParam& param, const Descriptor& forward)
      : param_(param), forward_(forward.Make()) {}

  void Forward(const ForwardArgs& args) override {
    Map<float>(args.ctx.run_ctx, args.out_data[1], args.req[1],
               [windows = LRNWindows{param_, args.in_data[0].shape},
                x = args.in_data[0].dptr<float>()](int64_t at) { return windows.Norm(x, at); });
    if (args.req[0] == OpReqType::kNullOp) return;
    forward_->Execute({{Arg::kSrc, args.in_data[0].data},
                       {Arg::kDst, args.out_data[0].data},
                       {Arg::kScratchpad, args.ctx.workspace.data}});
  }

 private:
  LRNParam param_;
  std::unique_ptr<Primitive> forward_;
};

Expected<Plan, Refusal> PlanOneDnn(const OperatorProperty& base, const PlanRequest& request,
                                   Backend& backend) {
  const LRNParam& param = static_cast<const LRNProperty&>(base).param();
  if (request.in[0].type != DType::kFloat32) return Refusal{"float32 only"};
  if (request.in[0].shape.Size() == 0) return Refusal{"empty array"};
  if (request.out_req[0] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  if (request.needs_backward) return Refusal{"its backward pass is slower than that of 'simd'"};
  const onednn::LocalResponse record{
      {request.in[0].shape, Layout()}, param.nsize, param.alpha, param.beta, param.knorm};
  const onednn::Result forward = LocalResponseForward(backend, record);
  if (!forward) return forward.error();

  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = forward->scratchpad_bytes();
  plan.make = [param, forward = *forward] { return std::make_unique<LRNOneDnn>(param, forward); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(lrn_onednn, registry) {
  registry.AddKernel({"LRN", mxtrain::DeviceType::kCPU, "onednn", 100, mxtrain::PlanOneDnn});
}
