// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of LRN. Written once for both devices: Device is OnCpu or OnGpu.
#include <cmath>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/lrn/lrn_windows.h"

namespace mxtrain::lrn {

template <typename T>
struct Norm {
  LRNWindows windows;
  const T* x;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t at) const { return windows.Norm(x, at); }
};
template <typename T>
struct Value {
  Norm<T> norm;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t at) const {
    using A = AccumulatorOf<T>;
    return A(norm.x[at]) * std::pow(norm(at), -A(norm.windows.param.beta));
  }
};
template <typename T>
struct Gradient {
  Norm<T> norm;
  const T* head;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t at) const {
    using A = AccumulatorOf<T>;
    const LRNParam& param = norm.windows.param;
    const A beta = A(param.beta), scale = A(2) * beta * A(param.alpha) / A(param.nsize);
    A sum = 0;
    norm.windows.ForCells(
        at, [&](int64_t j) { sum += A(head[j]) * A(norm.x[j]) * std::pow(norm(j), -beta - A(1)); });
    return A(head[at]) * std::pow(norm(at), -beta) - scale * A(norm.x[at]) * sum;
  }
};

template <typename Device>
class LRNReference final : public Operator {
 public:
  explicit LRNReference(const LRNParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "LRN", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Norm<T> norm{{param_, args.in_data[0].shape}, args.in_data[0].dptr<T>()};
      MapOn<T>(device, args.out_data[1], args.req[1], norm);
      MapOn<T>(device, args.out_data[0], args.req[0], Value<T>{norm});
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.in_grad[0].type, "LRN", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Norm<T> norm{{param_, args.in_data[0].shape}, args.in_data[0].dptr<T>()};
      MapOn<T>(Device{args.ctx.run_ctx}, args.in_grad[0], args.req[0],
               Gradient<T>{norm, args.out_grad[0].dptr<T>()});
    });
  }

 private:
  LRNParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(base, request);
  // The norm is recomputed.
  if (request.needs_backward)
    plan.backward_reads = BackwardReads{{true, false}, {true}, {false, false}};
  plan.make = [param = static_cast<const LRNProperty&>(base).param()] {
    return std::make_unique<LRNReference<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::lrn

MXTRAIN_KERNELS(lrn, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("LRN", lrn::MakePlan<Device>));
}
