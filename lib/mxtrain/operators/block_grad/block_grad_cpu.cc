#include "mxtrain/operators/block_grad/block_grad.h"

#include <cstring>

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
  void Backward(const OpContext&, std::span<const TBlob>, std::span<const TBlob>, std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    if (req[0] == OpReqType::kNullOp || req[0] == OpReqType::kAddTo || in_grad[0].Size() == 0) return;
    std::memset(in_grad[0].data, 0, static_cast<size_t>(in_grad[0].StoredSize() * SizeOf(in_grad[0].type)));
  }
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& property, const PlanRequest& request, Backend&) {
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<BlockGradCpu>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(block_grad_cpu, registry) {
  registry.AddRow({"BlockGrad", mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
}
