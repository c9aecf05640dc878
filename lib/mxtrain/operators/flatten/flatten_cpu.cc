#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/flatten/flatten.h"

namespace mxtrain {
namespace {

Expected<Plan, Refusal> PlanReference(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  Plan plan = PlainPlan(property, request);
  plan.make = [] { return std::make_unique<IdentityCpu>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(flatten_cpu, registry) {
  registry.AddRow({"Flatten", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
