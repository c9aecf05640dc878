#include "mxtrain/operators/block_grad/block_grad.h"

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"

namespace mxtrain {
namespace {

class BlockGradCpu final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob>) override {
    CopyBlob(ctx.run_ctx, req[0], in[0], out[0]);
  }
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<BlockGradCpu>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(block_grad_cpu, registry) {
  registry.AddRow({"BlockGrad", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
