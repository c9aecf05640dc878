// SPDX-License-Identifier: Apache-2.0
#pragma once
// _scale_gradient and _loss_scale_update, written once for both devices: Device is OnCpu or OnGpu.
#include <limits>
#include <memory>

#include "mxtrain/operator/broadcast.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/loss_scale.h"
#include "mxtrain/operators/loss_scale/loss_scale.h"
#include "mxtrain/operators/optimizer_update/optimizer_update.h"

namespace mxtrain::loss_scale {

// The scale is read on the device: a captured graph sees its current value.
template <typename C>
struct Scaled {
  MXTRAIN_HD C operator()(C gradient, float scale) const {
    return scale == 0 ? C(0) : gradient * static_cast<C>(scale);
  }
};

template <typename Device>
class ScaleGradient final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.in_grad[0].type, "_scale_gradient", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const TBlob& scale = args.in_data[1];
      const int64_t blocks = scale.shape[0];
      TBlob gradient = args.in_grad[0];
      gradient.shape = {blocks, gradient.Size() / blocks};
      MapBroadcast<T>(Device{args.ctx.run_ctx}, gradient, args.req[0], Scaled<ComputeOf<T>>{},
                      Broadcast<T>(args.out_grad[0].dptr<T>(), gradient.shape),
                      Broadcast<float>(scale.dptr<float>(), {blocks, 1}));
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
  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    const Sums sums{args.in_data[0].dptr<double>(), args.in_data[0].Size()};
    float *state = args.aux_states[0].dptr<float>(), *scale = args.aux_states[1].dptr<float>();
    MapOn<float>(device, args.out_data[0], args.req[0],
                 UpdatedScalar{sums, args.in_data[1].dptr<float>(), state});
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

}  // namespace mxtrain::loss_scale

MXTRAIN_KERNELS(loss_scale, Device, registry) {
  registry.AddKernel(mxtrain::loss_scale::ScaleGradientKernel<Device>());
  registry.AddKernel(mxtrain::loss_scale::LossScaleUpdateKernel<Device>());
}
