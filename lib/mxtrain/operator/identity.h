// SPDX-License-Identifier: Apache-2.0
#pragma once
// Shared by operators whose output is their input: views of an array under another shape, and
// losses that pass their input through.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {

// An operator that only moves elements. Its gradient reads the head gradients alone.
template <typename P>
class MovingProperty : public PropertyWithParam<P> {
 public:
  // Whether the only output is the only input, byte for byte, whatever the shapes.
  virtual bool IsIdentity() const = 0;

  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;
  }
  std::vector<InplacePair> ForwardInplaceOption() const override { return Pairs(); }
  std::vector<InplacePair> BackwardInplaceOption() const override { return Pairs(); }
  std::vector<InplacePair> ForwardIdentityOption() const override { return Pairs(); }
  std::vector<InplacePair> BackwardIdentityOption() const override { return Pairs(); }

 private:
  std::vector<InplacePair> Pairs() const {
    return IsIdentity() ? std::vector<InplacePair>{{0, 0}} : std::vector<InplacePair>{};
  }
};

// The description of Flatten and Reshape: the output has the same bytes under another shape.
template <typename P>
class ReshapingProperty : public MovingProperty<P> {
 public:
  bool IsIdentity() const final { return true; }
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
  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.out_grad[0], args.in_grad[0]);
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
