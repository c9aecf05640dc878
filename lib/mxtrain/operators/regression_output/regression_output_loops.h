// SPDX-License-Identifier: Apache-2.0
#pragma once
// The heads for regression, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/regression_output/regression_output.h"

namespace mxtrain::regression_output {

template <typename T>
struct Logistic {
  const T* x;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    return A(1) / (A(1) + std::exp(-A(x[i])));
  }
};
template <typename T>
struct Difference {
  const T *y, *label;
  AccumulatorOf<T> scale;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return scale * (AccumulatorOf<T>(y[i]) - AccumulatorOf<T>(label[i]));
  }
};
// At equality the gradient is negative, as in MXNet.
template <typename T>
struct Side {
  const T *y, *label;
  AccumulatorOf<T> scale;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return AccumulatorOf<T>(y[i]) > AccumulatorOf<T>(label[i]) ? scale : -scale;
  }
};

template <typename Device>
class RegressionOutput final : public Operator {
 public:
  RegressionOutput(RegressionKind kind, double scale) : kind_(kind), scale_(scale) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    if (kind_ != RegressionKind::kLogistic) return CopyBlob(device, req[0], in[0], out[0]);
    SwitchFloating(in[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(device, out[0], req[0], Logistic<T>{in[0].dptr<T>()});
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob>, std::span<const TBlob> in,
                std::span<const TBlob> out, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    SwitchFloating(in_grad[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *y = out[0].dptr<T>(), *label = in[1].dptr<T>();
      const auto scale = static_cast<AccumulatorOf<T>>(scale_);
      if (kind_ == RegressionKind::kAbsolute) {
        MapOn<T>(device, in_grad[0], req[0], Side<T>{y, label, scale});
      } else {
        MapOn<T>(device, in_grad[0], req[0], Difference<T>{y, label, scale});
      }
    });
  }

 private:
  RegressionKind kind_;
  double scale_;  // of the gradient of one element
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const RegressionOutputProperty&>(base);
  const TShape& label = request.in[1].shape;
  const int64_t per_sample = std::max<int64_t>(1, label.Product(1, label.ndim()));
  Plan plan = PlainPlan(property, request);
  plan.make = [kind = property.kind(),
               scale = double{property.param().grad_scale} / static_cast<double>(per_sample)] {
    return std::make_unique<RegressionOutput<Device>>(kind, scale);
  };
  return plan;
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  for (const char* op :
       {"LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"}) {
    registry.AddKernel(LastKernel<Device>(op, MakePlan<Device>));
  }
}

}  // namespace mxtrain::regression_output
