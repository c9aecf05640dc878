// SPDX-License-Identifier: Apache-2.0
#pragma once
// Operators that no gradient flows through: what is before them gets zero from them.
#include <memory>
#include <string>
#include <vector>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/property.h"

namespace mxtrain {

template <typename P>
class PropertyWithoutGradient : public PropertyWithParam<P> {
 public:
  bool HasGradient(int) const override { return false; }
  std::vector<int> DeclareBackwardDependency(const std::vector<int>& out_grad,
                                             const std::vector<int>&,
                                             const std::vector<int>&) const override {
    return out_grad;  // not a loss
  }
};

// Op(property.param()) over plain arrays, with `workspace` bytes.
template <typename Property, typename Op>
Expected<Plan, Refusal> ForwardPlan(const OperatorProperty& base, const PlanRequest& request,
                                    int64_t workspace = 0) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = workspace;
  plan.make = [param = static_cast<const Property&>(base).param()] {
    return std::make_unique<Op>(param);
  };
  return plan;
}

// The kernel of such an operator that needs no workspace.
template <typename Property, typename Op, typename Device>
KernelEntry ForwardKernel(std::string op) {
  return LastKernel<Device>(std::move(op),
                            [](const OperatorProperty& base, const PlanRequest& request, Backend&) {
                              return ForwardPlan<Property, Op>(base, request);
                            });
}

}  // namespace mxtrain
