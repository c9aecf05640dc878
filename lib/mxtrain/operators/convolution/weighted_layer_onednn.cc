// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/base/math.h"
#include "mxtrain/operators/convolution/weighted_layer.h"

#include <algorithm>

#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain::weighted {
namespace {

using onednn::Arg;
using onednn::Primitive;

class WeightedLayer final : public Operator {
 public:
  WeightedLayer(const Choice& choice, Wanted wanted, Arguments arguments)
      : forward_(choice.forward.Make()), wanted_(wanted), arguments_(arguments) {
    if (choice.backward_data) backward_data_ = choice.backward_data->Make();
    if (choice.backward_weights) {
      backward_weights_ = choice.backward_weights->Make();
      spare_offset_ = RoundUp(choice.backward_weights->scratchpad_bytes(), kBufferAlignment);
    }
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    if (arguments_.sum)
      CopyBlob(args.ctx.run_ctx, OpReqType::kWriteTo, args.in_data.back(), args.out_data[0]);
    forward_->Execute({{Arg::kSrc, args.in_data[kData].data},
                       {Arg::kWeights, args.in_data[kWeight].data},
                       {Arg::kBias, arguments_.bias ? args.in_data[kBias].data : nullptr},
                       {Arg::kDst, args.out_data[0].data},
                       {Arg::kScratchpad, args.ctx.workspace.data}});
  }

  void Backward(const BackwardArgs& args) override {
    if (wanted_.weights()) {
      // Only the bias is wanted: the gradient of the weights goes into the workspace.
      void* spare = static_cast<char*>(args.ctx.workspace.data) + spare_offset_;
      backward_weights_->Execute(
          {{Arg::kSrc, args.in_data[kData].data},
           {Arg::kDiffDst, args.out_grad[0].data},
           {Arg::kDiffWeights, wanted_.weight ? args.in_grad[kWeight].data : spare},
           {Arg::kDiffBias, wanted_.bias ? args.in_grad[kBias].data : nullptr},
           {Arg::kScratchpad, args.ctx.workspace.data}});
    }
    if (wanted_.data && args.req[kData] != OpReqType::kNullOp) {
      backward_data_->Execute({{Arg::kDiffDst, args.out_grad[0].data},
                               {Arg::kWeights, args.in_data[kWeight].data},
                               {Arg::kDiffSrc, args.in_grad[kData].data},
                               {Arg::kScratchpad, args.ctx.workspace.data}});
    }
  }

 private:
  std::unique_ptr<Primitive> forward_, backward_data_, backward_weights_;
  Wanted wanted_;
  Arguments arguments_;
  int64_t spare_offset_ = 0;
};

void PlanBackward(const Choice& choice, Wanted wanted, const PlanRequest& request, Plan* plan) {
  plan->accumulates = false;
  plan->backward_in.assign(request.in.size(), std::nullopt);
  std::vector<bool> reads(request.in.size(), false);
  reads[kData] = wanted.weights();
  reads[kWeight] = wanted.data;
  plan->backward_reads = BackwardReads{{true}, reads, {false}};
  if (choice.backward_data) {
    const Layout layout = choice.backward_data->LayoutOf(Arg::kWeights);
    if (layout != plan->in[kWeight]) plan->backward_in[kWeight] = layout;
    plan->backward_workspace = choice.backward_data->scratchpad_bytes();
  }
  if (choice.backward_weights) {
    int64_t bytes = choice.backward_weights->scratchpad_bytes();
    const Layout gradient = choice.backward_weights->LayoutOf(Arg::kDiffWeights);
    if (!wanted.weight)
      bytes = RoundUp(bytes, kBufferAlignment) +
              gradient.Bytes(request.in[kWeight].shape, DType::kFloat32);
    plan->backward_workspace = std::max(plan->backward_workspace, bytes);
    if (wanted.weight && request.in[kWeight].type != DType::kFloat32) {
      plan->grad_layout.assign(request.in.size(), std::nullopt);
      plan->grad_layout[kWeight] = {DType::kFloat32, gradient};
    }
  }
}

}  // namespace

int Penalty(const onednn::Descriptor& descriptor) {
  switch (descriptor.speed()) {
    case onednn::Speed::kDirect:
      return 0;
    case onednn::Speed::kGemm:
      return 10;
    default:
      return kReferencePenalty;
  }
}

std::string WhyNot(const PlanRequest& request, const Arguments& arguments) {
  for (const TensorSpec& spec : request.in) {
    if (spec.shape.Size() == 0) return "empty array";
  }
  if (std::string why = onednn::WhyNotType(request.in[kData].type); !why.empty()) return why;
  if (arguments.bias && request.in[kBias].type != DType::kFloat32) return "float32 bias only";
  return "";
}

Plan PlanOf(const OperatorProperty& property, const PlanRequest& request, const Choice& choice,
            const Wanted& wanted, const Arguments& arguments) {
  Plan plan = PlainPlan(property, request);
  plan.in[kData] = AsOffered(request.in[kData].shape, choice.forward.LayoutOf(Arg::kSrc),
                             request.in_layout[kData]);
  plan.in[kWeight] = choice.forward.LayoutOf(Arg::kWeights);
  plan.out[0] = Canonical(request.out[0].shape, choice.forward.LayoutOf(Arg::kDst));
  if (arguments.sum) plan.in.back() = plan.out[0];
  plan.forward_workspace = choice.forward.scratchpad_bytes();
  if (request.needs_backward) PlanBackward(choice, wanted, request, &plan);
  plan.cost += ArithmeticCost(property, request);
  plan.make = [choice, wanted, arguments] {
    return std::make_unique<WeightedLayer>(choice, wanted, arguments);
  };
  return plan;
}

}  // namespace mxtrain::weighted
