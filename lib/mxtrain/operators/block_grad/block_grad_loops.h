// SPDX-License-Identifier: Apache-2.0
#pragma once
// BlockGrad, written once for both devices: Device is OnCpu or OnGpu.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/block_grad/block_grad.h"

namespace mxtrain {

template <typename Device>
class BlockGradCopy final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
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

MXTRAIN_KERNELS(block_grad, Device, registry) {
  registry.AddKernel(mxtrain::BlockGradKernel<Device>());
}
