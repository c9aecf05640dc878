// SPDX-License-Identifier: Apache-2.0
#pragma once
// Cast over the stored elements of two arrays of the same layout: zero stays zero, so padding does
// too. Written once for both devices: Device is OnCpu or OnGpu.
#include <limits>
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/cast/cast.h"

namespace mxtrain {

template <typename To, typename From>
MXTRAIN_HD To Converted(From value) {
  if constexpr (std::is_integral_v<To> && !std::is_integral_v<From>) {
    const double wide = static_cast<double>(value);
    if (wide != wide) return 0;
    if (wide >= static_cast<double>(std::numeric_limits<To>::max()))
      return std::numeric_limits<To>::max();
    if (wide <= static_cast<double>(std::numeric_limits<To>::min()))
      return std::numeric_limits<To>::min();
    return static_cast<To>(wide);
  } else if constexpr (std::is_integral_v<From> && !std::is_integral_v<To> && sizeof(To) == 2) {
    return static_cast<To>(static_cast<float>(value));
  } else {
    return ElementOf<To>(value);
  }
}

template <typename To, typename From>
struct ConvertedAt {
  const From* source;
  MXTRAIN_HD To operator()(int64_t i) const { return Converted<To>(source[i]); }
};

template <typename Device>
class CastLoop final : public Operator {
 public:
  void Forward(const ForwardArgs& args) override {
    Convert(Device{args.ctx.run_ctx}, args.in_data[0], args.out_data[0], args.req[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Convert(Device{args.ctx.run_ctx}, args.out_grad[0], args.in_grad[0], args.req[0]);
  }

 private:
  static void Convert(const Device& device, const TBlob& from, const TBlob& to, OpReqType req) {
    SwitchType(from.type, "Cast", [&](auto from_tag) {
      SwitchType(to.type, "Cast", [&](auto to_tag) {
        using From = typename decltype(from_tag)::type;
        using To = typename decltype(to_tag)::type;
        MapOn<To>(device, to, req, ConvertedAt<To, From>{from.dptr<From>()});
      });
    });
  }
};

template <typename Device>
KernelEntry CastKernel() {
  return LastKernel<Device>(
      "Cast",
      [](const OperatorProperty& property, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        Plan plan = FlatPlan(property, request, true);
        plan.make = [] { return std::make_unique<CastLoop<Device>>(); };
        return plan;
      },
      Takes::kEveryType);
}

}  // namespace mxtrain

MXTRAIN_KERNELS(cast, Device, registry) {
  registry.AddKernel(mxtrain::CastKernel<Device>());
}
