// SPDX-License-Identifier: Apache-2.0
#pragma once
// _scale_gradient and _loss_scale_update, written once for both devices: Device is OnCpu or OnGpu.
#include <limits>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/loss_scale.h"
#include "mxtrain/operators/loss_scale/loss_scale.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::loss_scale {

// The scale is read on the device: a captured graph sees its current value.
template <typename C>
struct Scaled {
  const float* scale;
  MXTRAIN_HD C operator()(C gradient) const { return gradient * static_cast<C>(*scale); }
};

template <typename Device>
class ScaleGradient final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    CopyBlob(Device{ctx.run_ctx}, req[0], in[0], out[0]);
  }
  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in,
                std::span<const TBlob>, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    SwitchFloating(in_grad[0].type, "_scale_gradient", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapElements<T>(Device{ctx.run_ctx}, in_grad[0], req[0],
                     Scaled<ComputeOf<T>>{in[1].dptr<float>()}, out_grad[0]);
    });
  }
};

struct Sums {
  const double* squares;  // of each gradient
  int64_t count;
  // A sum of squares exceeds the largest number only if it is infinite or NaN.
  MXTRAIN_HD bool Finite() const {
    double sum = 0;
    for (int64_t n = 0; n < count; ++n) sum += squares[n];
    return sum <= std::numeric_limits<double>::max();
  }
};

struct UpdatedScalar {
  Sums sums;
  const float *scalars, *state;
  MXTRAIN_HD float operator()(int64_t i) const {
    if (i % optimizer_update::kNumScalars != optimizer_update::kRescale) return scalars[i];
    return sums.Finite() ? scalars[i] / state[kLossScaleValue] : 0;
  }
};

struct NextScale {
  Sums sums;
  float *state, *scale;
  MXTRAIN_HD void operator()(int64_t) const {
    const float before = state[kLossScaleValue];
    if (!sums.Finite()) {
      state[kLossScaleSkipped] += 1;
      if (before <= kLowestLossScale) state[kLossScaleAtLowest] += 1;
      Change(before / 2);
    } else if (++state[kLossScaleGood] >= kLossScaleInterval) {
      Change(before * 2);
    }
    *scale = state[kLossScaleValue];
  }
  MXTRAIN_HD void Change(float to) const {
    state[kLossScaleGood] = 0;
    if (to >= kLowestLossScale && to <= kHighestLossScale) state[kLossScaleValue] = to;
  }
};

template <typename Device>
class LossScaleUpdate final : public Operator {
 public:
  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob> aux) override {
    const Device device{ctx.run_ctx};
    const Sums sums{in[0].dptr<double>(), in[0].Size()};
    float *state = aux[0].dptr<float>(), *scale = aux[1].dptr<float>();
    MapOn<float>(device, out[0], req[0], UpdatedScalar{sums, in[1].dptr<float>(), state});
    Launch(device, 1, NextScale{sums, state, scale});
  }
};

template <typename Device>
KernelEntry ScaleGradientKernel() {
  return LastKernel<Device>(
      "_scale_gradient",
      [](const OperatorProperty& property, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        if (!IsFloating(request.in[0].type))
          return Refusal{format("no function for {}", NameOf(request.in[0].type))};
        Plan plan = PlainPlan(property, request);
        plan.make = [] { return std::make_unique<ScaleGradient<Device>>(); };
        return plan;
      });
}

template <typename Device>
KernelEntry LossScaleUpdateKernel() {
  return LastKernel<Device>("_loss_scale_update",
                            [](const OperatorProperty& property, const PlanRequest& request,
                               Backend&) -> Expected<Plan, Refusal> {
                              Plan plan = PlainPlan(property, request);
                              plan.make = [] {
                                return std::make_unique<LossScaleUpdate<Device>>();
                              };
                              return plan;
                            });
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  registry.AddKernel(ScaleGradientKernel<Device>());
  registry.AddKernel(LossScaleUpdateKernel<Device>());
}

}  // namespace mxtrain::loss_scale
