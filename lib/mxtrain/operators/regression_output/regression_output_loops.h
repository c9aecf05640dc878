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

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    if (kind_ != RegressionKind::kLogistic)
      return CopyBlob(device, args.req[0], args.in_data[0], args.out_data[0]);
    SwitchFloating(args.in_data[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(device, args.out_data[0], args.req[0], Logistic<T>{args.in_data[0].dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_grad[0].type, "a regression output", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const T *y = args.out_data[0].dptr<T>(), *label = args.in_data[1].dptr<T>();
      const auto scale = static_cast<AccumulatorOf<T>>(scale_);
      if (kind_ == RegressionKind::kAbsolute) {
        MapOn<T>(device, args.in_grad[0], args.req[0], Side<T>{y, label, scale});
      } else {
        MapOn<T>(device, args.in_grad[0], args.req[0], Difference<T>{y, label, scale});
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

}  // namespace mxtrain::regression_output

MXTRAIN_KERNELS(regression_output, Device, registry) {
  using namespace mxtrain;
  for (const char* op :
       {"LinearRegressionOutput", "LogisticRegressionOutput", "MAERegressionOutput"}) {
    registry.AddKernel(LastKernel<Device>(op, regression_output::MakePlan<Device>));
  }
}
