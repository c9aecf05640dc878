// SPDX-License-Identifier: Apache-2.0
#pragma once
// The choice among the kernels of an operator on one device, behind OperatorProperty::CreatePlan
// and PlanOnDevice. Private to this module.
#include <functional>
#include <string>
#include <vector>

#include "mxtrain/operator/registry.h"

namespace mxtrain {

// The plan of the first kernel on the request's device that accepts, or the reason of each that
// does not. `why_not`: a reason to pass over a plan, "" for none.
Expected<Plan, std::vector<std::string>> BestPlan(
    const OperatorProperty& property, const OperatorRegistry& registry, const PlanRequest& request,
    Backend& backend, const std::function<std::string(const Plan&)>& why_not = {});

[[noreturn]] void ThrowNoKernel(const std::string& op, const PlanRequest& request,
                                const std::vector<std::string>& refusals);

}  // namespace mxtrain
