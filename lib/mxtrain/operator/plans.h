// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plans shared by many kernels. A kernel starts from one of them, changes what differs and sets
// `make`.
#include <memory>
#include <string>
#include <utility>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// Every array plain; the declared in-place pairs whose arrays have equal bytes; the cost of moving
// every array once.
MXTRAIN_API Plan PlainPlan(const OperatorProperty& property, const PlanRequest& request);

// For kernels that run over the stored elements of arrays of one shape: as PlainPlan, but every
// array with the shape of output 0 takes the first opaque layout offered. A layout with padding is
// used only if the kernel maps zeros to zeros.
MXTRAIN_API Plan FlatPlan(const OperatorProperty& property, const PlanRequest& request,
                          bool zero_to_zero);

// The layout of the first input of this shape that is offered channels last (blocked_layout.h);
// plain if none is.
MXTRAIN_API Layout OfferedChannelsLast(const PlanRequest& request, const TShape& shape);
// Gives this layout to every array of `plan` with as many axes as output 0: images, and convolution
// windows.
MXTRAIN_API void LieAs(Layout layout, const OperatorProperty& property, const PlanRequest& request,
                       Plan* plan);

// Nanoseconds to move `bytes`: the cost model of all memory-bound kernels.
MXTRAIN_API double MoveCost(double bytes);

// The declared pairs whose arrays have equal bytes under the layouts of `plan`.
MXTRAIN_API void GrantInplace(const OperatorProperty& property, const PlanRequest& request,
                              Plan* plan);

struct OnCpu;  // operator/kernel.h

// Element types of the data, which is argument 0, or output 0 if there are no arguments.
enum class Takes { kFloats, kEveryType };
// `plan`, refusing data of other than floating types.
MXTRAIN_API PlanFn OfFloats(PlanFn plan);

// The kernel of an operator that is tried last on Device (OnCpu or OnGpu).
template <typename Device>
KernelEntry LastKernel(std::string op, PlanFn plan, Takes takes = Takes::kFloats) {
  return {std::move(op), Device::kType, Device::kKernelName, kRefRank,
          takes == Takes::kFloats ? OfFloats(std::move(plan)) : std::move(plan)};
}

// The same for an operator that needs only its parameters and arrays: Op(property.param()), all
// arrays plain.
template <typename Property, typename Op, typename Device = OnCpu>
KernelEntry ReferenceKernel(std::string op, Takes takes = Takes::kFloats) {
  return LastKernel<Device>(
      std::move(op),
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        Plan plan = PlainPlan(base, request);
        plan.make = [param = static_cast<const Property&>(base).param()] {
          return std::make_unique<Op>(param);
        };
        return plan;
      },
      takes);
}

}  // namespace mxtrain
