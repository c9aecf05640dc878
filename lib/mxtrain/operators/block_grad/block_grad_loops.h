// SPDX-License-Identifier: Apache-2.0
#pragma once
// BlockGrad, written once for both devices: Device is OnCpu or OnGpu.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/block_grad/block_grad.h"

namespace mxtrain {

template <typename Device>
class BlockGradCopy final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    CopyBlob(Device{ctx.run_ctx}, req[0], in[0], out[0]);
  }
};

template <typename Device>
KernelEntry BlockGradKernel() {
  return LastKernel<Device>(
      "BlockGrad",
      [](const OperatorProperty& property, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        if (request.needs_backward) return Refusal{"has no gradient"};
        Plan plan = FlatPlan(property, request, true);
        plan.make = [] { return std::make_unique<BlockGradCopy<Device>>(); };
        return plan;
      },
      Takes::kEveryType);
}

}  // namespace mxtrain
