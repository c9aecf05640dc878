// SPDX-License-Identifier: Apache-2.0
// Cast between float32 and bfloat16 over stored elements. Compiled once per instruction set; the
// best supported set is selected at run time. The loops are plain; the compiler vectorizes them for
// each set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/cast/cast_simd_cpu.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <cstdint>

#include "mxtrain/base/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain {
namespace HWY_NAMESPACE {

void Widen(const bfloat16* x, float* y, int64_t n, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i) y[i] += static_cast<float>(x[i]);
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
  }
}

void Narrow(const float* x, bfloat16* y, int64_t n, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<bfloat16>(static_cast<float>(y[i]) + static_cast<float>(bfloat16(x[i])));
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<bfloat16>(x[i]);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/cast/cast.h"

namespace mxtrain {
HWY_EXPORT(Widen);
HWY_EXPORT(Narrow);

namespace {

void Convert(const TBlob& from, const TBlob& to, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  const bool add = req == OpReqType::kAddTo;
  ParallelFor(to.StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
    if (to.type == DType::kFloat32) {
      HWY_DYNAMIC_DISPATCH(Widen)
      (from.dptr<bfloat16>() + begin, to.dptr<float>() + begin, end - begin, add);
    } else {
      HWY_DYNAMIC_DISPATCH(Narrow)
      (from.dptr<float>() + begin, to.dptr<bfloat16>() + begin, end - begin, add);
    }
  });
}

class CastSimd final : public Operator {
 public:
  void Forward(const OpContext&, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    Convert(in[0], out[0], req[0]);
  }
  void Backward(const OpContext&, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    Convert(out_grad[0], in_grad[0], req[0]);
  }
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  const DType from = request.in[0].type, to = request.out[0].type;
  const bool narrows = from == DType::kFloat32 && to == DType::kBfloat16,
             widens = from == DType::kBfloat16 && to == DType::kFloat32;
  if (!narrows && !widens) return Refusal{"between float32 and bfloat16 only"};
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<CastSimd>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(cast_simd_cpu, registry) {
  registry.AddKernel({"Cast", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::PlanSimd});
}
#endif  // HWY_ONCE
