#include "mxtrain/operator/identity.h"

#include <cstring>
#include <memory>

#include "mxtrain/operator/plans.h"

namespace mxtrain {

PlanRow IdentityRow(std::string op) {
  return {std::move(op), DeviceType::kCPU, "ref", kRefRank,
          [](const OperatorProperty& property, const PlanRequest& request, Backend&) -> Expected<Plan, Refusal> {
            Plan plan = PlainPlan(property, request);
            plan.make = [] { return std::make_unique<IdentityCpu>(); };
            return plan;
          }};
}

void CopyBlob(const RunContext& ctx, OpReqType req, const TBlob& from, const TBlob& to) {
  MXTRAIN_ASSERT(from.type == to.type && from.StoredSize() == to.StoredSize());
  if (req == OpReqType::kAddTo) {
    SwitchType(to.type, "a copy", [&](auto tag) {
      using T = typename decltype(tag)::type;
      Map<T>(ctx, to, req, [x = from.dptr<T>()](int64_t i) { return AccumulatorOf<T>(x[i]); });
    });
  } else if (req != OpReqType::kNullOp && from.data != to.data) {
    const int64_t width = SizeOf(to.type);
    ParallelFor(to.StoredSize(), 4 * kParallelGrain, [&](int64_t begin, int64_t end) {
      std::memcpy(to.dptr<char>() + begin * width, from.dptr<char>() + begin * width, static_cast<size_t>((end - begin) * width));
    });
  }
}

void IdentityCpu::Forward(const OpContext& ctx, std::span<const TBlob> in_data, std::span<const OpReqType> req,
                          std::span<const TBlob> out_data, std::span<const TBlob>) {
  CopyBlob(ctx.run_ctx, req[0], in_data[0], out_data[0]);
}

void IdentityCpu::Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>, std::span<const TBlob>,
                           std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob>) {
  CopyBlob(ctx.run_ctx, req[0], out_grad[0], in_grad[0]);
}

}  // namespace mxtrain
