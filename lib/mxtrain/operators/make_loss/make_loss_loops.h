// SPDX-License-Identifier: Apache-2.0
#pragma once
// MakeLoss and make_loss, written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <memory>

#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/make_loss/make_loss.h"

namespace mxtrain::make_loss {

template <typename T>
struct Valid {
  const T* x;
  float threshold;
  MXTRAIN_HD double operator()(int64_t i) const { return x[i] > threshold ? 1 : 0; }
};

// scale / divisor, or scale / max(1, *count) if there is a count.
template <typename A>
struct Constant {
  A scale, divisor;
  const double* count;
  MXTRAIN_HD A operator()(int64_t) const {
    if (!count) return scale / divisor;
    return scale / static_cast<A>(*count < 1 ? 1 : *count);
  }
};

template <typename Device>
class MakeLoss final : public Operator {
 public:
  explicit MakeLoss(const MakeLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    CopyBlob(Device{args.ctx.run_ctx}, args.req[0], args.in_data[0], args.out_data[0]);
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Device device{args.ctx.run_ctx};
    const TShape& shape = args.in_grad[0].shape;
    SwitchFloating(args.in_grad[0].type, "MakeLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      Constant<A> gradient{A(param_.grad_scale), A(1), nullptr};
      if (param_.normalization == kMakeLossBatch && shape.ndim() > 0)
        gradient.divisor = static_cast<A>(std::max<int64_t>(1, shape[0]));
      if (param_.normalization == kMakeLossValid) {
        const Valid<T> valid{args.in_data[0].dptr<T>(), param_.valid_thresh};
        gradient.count = SumTerms<double>(device, Slices(1, shape.Size()), valid,
                                          args.ctx.workspace.dptr<double>());
      }
      MapOn<T>(device, args.in_grad[0], args.req[0], gradient);
    });
  }

 private:
  MakeLossParam param_;
};

inline const MakeLossParam& ParamOf(const MakeLossProperty& property) {
  return property.param();
}
inline MakeLossParam ParamOf(const MakeLossOfOnesProperty&) {
  return {{}, 1, 0, kMakeLossNull};
}

template <typename Device, typename Property>
KernelEntry KernelOf(const char* op) {
  return LastKernel<Device>(
      op,
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        const MakeLossParam param = ParamOf(static_cast<const Property&>(base));
        Plan plan = PlainPlan(base, request);
        if (request.needs_backward && param.normalization == kMakeLossValid) {
          plan.backward_workspace = BytesOfSum<double>(Slices(1, request.in[0].shape.Size()));
        }
        plan.make = [param] { return std::make_unique<MakeLoss<Device>>(param); };
        return plan;
      });
}

}  // namespace mxtrain::make_loss

MXTRAIN_KERNELS(make_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(make_loss::KernelOf<Device, MakeLossProperty>("MakeLoss"));
  registry.AddKernel(make_loss::KernelOf<Device, MakeLossOfOnesProperty>("make_loss"));
}
