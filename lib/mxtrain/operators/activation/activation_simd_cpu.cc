// SPDX-License-Identifier: Apache-2.0
// ReLU on float32 and bfloat16 over stored elements. Compiled once per instruction set; the best
// supported set is selected at run time. The loops are plain; the compiler vectorizes them for each
// set.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/activation/activation_simd_cpu.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <cstdint>

#include "mxtrain/base/dtype.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain {
namespace HWY_NAMESPACE {

// y = max(x, 0), or y += it; NaN stays NaN. y may be x.
void ReLUForward(const float* x, float* y, int64_t n, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i) y[i] += x[i] < 0 ? 0.0f : x[i];
  } else {
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] < 0 ? 0.0f : x[i];
  }
}

// dx = g where y > 0, else 0, or dx += it. dx may be g.
void ReLUBackward(const float* g, const float* y, float* dx, int64_t n, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i) dx[i] += y[i] > 0 ? g[i] : 0.0f;
  } else {
    for (int64_t i = 0; i < n; ++i) dx[i] = y[i] > 0 ? g[i] : 0.0f;
  }
}

// The same on bfloat16 as bits: values above 0x8000 that are not NaN are negative, 1 to infinity
// are positive.
void ReLUForwardNarrow(const bfloat16* x, bfloat16* y, int64_t n, bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i)
      y[i] = static_cast<float>(y[i]) +
             (static_cast<float>(x[i]) < 0 ? 0.0f : static_cast<float>(x[i]));
  } else {
    for (int64_t i = 0; i < n; ++i)
      y[i].bits = x[i].bits > 0x8000 && x[i].bits <= 0xff80 ? 0 : x[i].bits;
  }
}

void ReLUBackwardNarrow(const bfloat16* g, const bfloat16* y, bfloat16* dx, int64_t n,
                        bool accumulate) {
  if (accumulate) {
    for (int64_t i = 0; i < n; ++i)
      dx[i] = static_cast<float>(dx[i]) +
              (static_cast<float>(y[i]) > 0 ? static_cast<float>(g[i]) : 0.0f);
  } else {
    for (int64_t i = 0; i < n; ++i)
      dx[i].bits = y[i].bits != 0 && y[i].bits <= 0x7f80 ? g[i].bits : 0;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/activation/activation.h"

namespace mxtrain {
HWY_EXPORT(ReLUForward);
HWY_EXPORT(ReLUBackward);
HWY_EXPORT(ReLUForwardNarrow);
HWY_EXPORT(ReLUBackwardNarrow);

namespace {

class ReLUSimd final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const bool add = args.req[0] == OpReqType::kAddTo;
    ParallelFor(args.out_data[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
      if (args.out_data[0].type == DType::kFloat32) {
        HWY_DYNAMIC_DISPATCH(ReLUForward)
        (args.in_data[0].dptr<float>() + begin, args.out_data[0].dptr<float>() + begin, end - begin,
         add);
      } else {
        HWY_DYNAMIC_DISPATCH(ReLUForwardNarrow)
        (args.in_data[0].dptr<bfloat16>() + begin, args.out_data[0].dptr<bfloat16>() + begin,
         end - begin, add);
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const bool add = args.req[0] == OpReqType::kAddTo;
    ParallelFor(args.in_grad[0].StoredSize(), kParallelGrain, [&](int64_t begin, int64_t end) {
      if (args.in_grad[0].type == DType::kFloat32) {
        HWY_DYNAMIC_DISPATCH(ReLUBackward)
        (args.out_grad[0].dptr<float>() + begin, args.out_data[0].dptr<float>() + begin,
         args.in_grad[0].dptr<float>() + begin, end - begin, add);
      } else {
        HWY_DYNAMIC_DISPATCH(ReLUBackwardNarrow)
        (args.out_grad[0].dptr<bfloat16>() + begin, args.out_data[0].dptr<bfloat16>() + begin,
         args.in_grad[0].dptr<bfloat16>() + begin, end - begin, add);
      }
    });
  }
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const ActivationProperty&>(base);
  if (property.param().act_type != kReLU) return Refusal{"relu only"};
  if (request.in[0].type != DType::kFloat32 && request.in[0].type != DType::kBfloat16)
    return Refusal{"float32 and bfloat16 only"};
  Plan plan = FlatPlan(property, request, true);
  plan.make = [] { return std::make_unique<ReLUSimd>(); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(activation_simd_cpu, registry) {
  registry.AddKernel({"Activation", mxtrain::DeviceType::kCPU, "simd", 100, mxtrain::PlanSimd});
}
#endif  // HWY_ONCE
