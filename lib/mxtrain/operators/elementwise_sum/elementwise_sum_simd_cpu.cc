// SPDX-License-Identifier: Apache-2.0
// ElementWiseSum of float32 and bfloat16 over stored elements. Compiled once per instruction set;
// the best supported set is selected at run time. The loops are plain; the compiler vectorizes them
// for each set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/elementwise_sum/elementwise_sum_simd_cpu.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>
#include <cstdint>

#include "mxtrain/operator/operator.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain {
namespace HWY_NAMESPACE {

// out[begin, end) = the sum of all inputs, or out += it. Runs block by block, so that the float32
// partial sums stay in the first-level cache; `out` may be the first input.
template <typename T>
void SumRangeOf(const TBlob* in, int count, T* out, int64_t begin, int64_t end, bool accumulate) {
  constexpr int64_t kBlock = 2048;
  alignas(64) float sum[kBlock];
  for (; begin < end; begin += kBlock) {
    const int64_t n = std::min(kBlock, end - begin);
    const T* first = static_cast<const T*>(in[0].data) + begin;
    for (int64_t i = 0; i < n; ++i) sum[i] = static_cast<float>(first[i]);
    for (int k = 1; k < count; ++k) {
      const T* next = static_cast<const T*>(in[k].data) + begin;
      for (int64_t i = 0; i < n; ++i) sum[i] += static_cast<float>(next[i]);
    }
    T* to = out + begin;
    if (accumulate) {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(static_cast<float>(to[i]) + sum[i]);
    } else {
      for (int64_t i = 0; i < n; ++i) to[i] = static_cast<T>(sum[i]);
    }
  }
}

void SumRange(const TBlob* in, int count, const TBlob& out, int64_t begin, int64_t end,
              bool accumulate) {
  if (out.type == DType::kFloat32) {
    SumRangeOf(in, count, out.dptr<float>(), begin, end, accumulate);
  } else {
    SumRangeOf(in, count, out.dptr<bfloat16>(), begin, end, accumulate);
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/elementwise_sum/elementwise_sum.h"

namespace mxtrain {
HWY_EXPORT(SumRange);

namespace {

class ElementWiseSumSimd final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    ParallelFor(args.out_data[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
      HWY_DYNAMIC_DISPATCH(SumRange)
      (args.in_data.data(), static_cast<int>(args.in_data.size()), args.out_data[0], begin, end,
       args.req[0] == OpReqType::kAddTo);
    });
  }

  void Backward(const BackwardArgs& args) override {
    for (size_t i = 0; i < args.in_grad.size(); ++i)
      CopyBlob(args.ctx.run_ctx, args.req[i], args.out_grad[0], args.in_grad[i]);
  }
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& property, const PlanRequest& request,
                                 Backend&) {
  if (request.out[0].type != DType::kFloat32 && request.out[0].type != DType::kBfloat16)
    return Refusal{"float32 and bfloat16 only"};
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<ElementWiseSumSimd>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(elementwise_sum_simd_cpu, registry) {
  registry.AddKernel({"ElementWiseSum", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::PlanSimd});
}
#endif  // HWY_ONCE
