#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/reshape/reshape.h"

namespace mxtrain {
namespace {

Expected<Plan, Refusal> PlanReference(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  Plan plan = PlainPlan(property, request);
  plan.make = [] { return std::make_unique<IdentityCpu>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(reshape_cpu, registry) {
  registry.AddRow({"Reshape", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
