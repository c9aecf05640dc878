// SPDX-License-Identifier: Apache-2.0
#pragma once
// _FoldBatchNorm, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <cmath>
#include <memory>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/fold_batch_norm/fold_batch_norm.h"

namespace mxtrain::fold_batch_norm {

// T: of weight and bias, S: of the four arrays of the BatchNorm.
template <typename T, typename S>
struct Arrays {
  using A = std::common_type_t<AccumulatorOf<T>, AccumulatorOf<S>>;
  const T *weight, *bias;  // bias: null without one
  const S *gamma, *beta, *mean, *variance;
  A eps;
  bool fix_gamma;
  int64_t per_channel;  // weights

  MXTRAIN_HD A Scale(int64_t channel) const {
    return (fix_gamma ? A(1) : A(gamma[channel])) / std::sqrt(A(variance[channel]) + eps);
  }
};
template <typename T, typename S>
struct Weight : Arrays<T, S> {
  using typename Arrays<T, S>::A;
  MXTRAIN_HD A operator()(int64_t i) const {
    return A(this->weight[i]) * this->Scale(i / this->per_channel);
  }
};
template <typename T, typename S>
struct Bias : Arrays<T, S> {
  using typename Arrays<T, S>::A;
  MXTRAIN_HD A operator()(int64_t o) const {
    return ((this->bias ? A(this->bias[o]) : A(0)) - A(this->mean[o])) * this->Scale(o) +
           A(this->beta[o]);
  }
};

template <typename Device>
class Fold final : public Operator {
 public:
  explicit Fold(const FoldBatchNormParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const size_t first = param_.no_bias ? 1 : 2;
    SwitchFloating(args.in_data[0].type, "_FoldBatchNorm", [&](auto weight_tag) {
      SwitchFloating(args.in_data.back().type, "_FoldBatchNorm", [&](auto statistics_tag) {
        using T = typename decltype(weight_tag)::type;
        using S = typename decltype(statistics_tag)::type;
        using A = typename Arrays<T, S>::A;
        const Arrays<T, S> arrays{
            args.in_data[0].dptr<T>(),
            param_.no_bias ? nullptr : args.in_data[1].dptr<T>(),
            args.in_data[first].dptr<S>(),
            args.in_data[first + 1].dptr<S>(),
            args.in_data[first + 2].dptr<S>(),
            args.in_data[first + 3].dptr<S>(),
            A(param_.eps),
            param_.fix_gamma,
            std::max<int64_t>(args.in_data[0].shape.Product(1, args.in_data[0].shape.ndim()), 1)};
        MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[0], args.req[0], Weight<T, S>{arrays});
        MapOn<T>(Device{args.ctx.run_ctx}, args.out_data[1], args.req[1], Bias<T, S>{arrays});
      });
    });
  }

 private:
  FoldBatchNormParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  if (request.needs_backward) return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.make = [param = static_cast<const FoldBatchNormProperty&>(base).param()] {
    return std::make_unique<Fold<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::fold_batch_norm

MXTRAIN_KERNELS(fold_batch_norm, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("_FoldBatchNorm", fold_batch_norm::MakePlan<Device>));
}
