// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by operators whose output is their input: views of an array under another shape, and
// losses that pass their input through.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {

// The description of Flatten and Reshape: the output has the same bytes under another shape.
template <typename P>
class ReshapingProperty : public PropertyWithParam<P> {
 public:
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardInplaceOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> ForwardIdentityOption() const override { return {{0, 0}}; }
  std::vector<InplacePair> BackwardIdentityOption() const override { return {{0, 0}}; }
};

// to = from or to += from over the stored elements. Both arrays have equally many, in the same
// order. Does nothing if both are the same memory. The version for kernel.cuh's OnGpu is in
// identity.cuh.
MXTRAIN_API void CopyBlob(const OnCpu& device, OpReqType req, const TBlob& from, const TBlob& to);
inline void CopyBlob(const RunContext& ctx, OpReqType req, const TBlob& from, const TBlob& to) {
  CopyBlob(OnCpu{ctx}, req, from, to);
}

// to = 0 over the stored elements; does nothing if the request is kNullOp or kAddTo. OnGpu has its
// own version.
MXTRAIN_API void ZeroBlob(const OnCpu& device, OpReqType req, const TBlob& to);

// Output 0 is input 0; the gradient is the head gradient. For all types and layouts.
template <typename Device>
class Identity final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in_data, std::span<const OpReqType> req,
               std::span<const TBlob> out_data, std::span<const TBlob>) override {
    CopyBlob(Device{ctx.run_ctx}, req[0], in_data[0], out_data[0]);
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    CopyBlob(Device{ctx.run_ctx}, req[0], out_grad[0], in_grad[0]);
  }
};

// The kernel of such an operator over plain arrays.
template <typename Device = OnCpu>
KernelEntry IdentityKernel(std::string op) {
  return LastKernel<Device>(
      std::move(op),
      [](const OperatorProperty& property, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        Plan plan = PlainPlan(property, request);
        plan.make = [] { return std::make_unique<Identity<Device>>(); };
        return plan;
      },
      Takes::kEveryType);
}

}  // namespace mxtrain
