// SPDX-License-Identifier: Apache-2.0
#pragma once
// group_adagrad_update: a mean square for each index of axis 0, as the rows of an embedding have
// it. Written once for both devices: Device is OnCpu or OnGpu.
#include <algorithm>
#include <memory>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/optimizer_update/update_rules.h"

namespace mxtrain::optimizer_update {

// Of a group: its history, which one member contributes, and the sum of squares of its gradients.
struct HistoryAndSquares {
  double history = 0, squares = 0;
  MXTRAIN_HD friend HistoryAndSquares operator+(const HistoryAndSquares& a,
                                                const HistoryAndSquares& b) {
    return {a.history + b.history, a.squares + b.squares};
  }
};

template <typename T>
struct UpdateGroup {
  using C = ComputeOf<T>;
  const float* scalars;  // of the weight, on the device
  double clip_gradient, epsilon;
  int64_t length;  // elements of a group
  const T *weight, *grad;
  T *history, *out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t group) const {
    const Step<C> step = StepOf<C>(scalars, clip_gradient);
    const int64_t first = group * length;
    HistoryAndSquares sums;
    // Only the member that writes this element reads it.
    if (team.rank() == 0) sums.history = static_cast<double>(history[first]);
    for (int64_t k = team.rank(); k < length; k += team.size()) {
      const auto g = static_cast<double>(step.Gradient(static_cast<C>(grad[first + k])));
      sums.squares += g * g;
    }
    sums = team.Fold(sums, AddBoth{});
    const double after = sums.history + sums.squares / static_cast<double>(length);
    const C root = static_cast<C>(std::sqrt(after + epsilon));
    for (int64_t k = team.rank(); k < length; k += team.size()) {
      const int64_t i = first + k;
      C w = static_cast<C>(weight[i]);
      if (!step.Skipped()) {
        w -= step.lr * (step.Gradient(static_cast<C>(grad[i])) / root + step.wd * w);
        history[i] = ElementOf<T>(after);
      }
      if (req != OpReqType::kNullOp) Assign(req, out, i, w);
    }
  }
};

template <typename Device>
class GroupAdagrad final : public Operator {
 public:
  explicit GroupAdagrad(const GroupAdagradParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const size_t count = args.out_data.size();
    SwitchFloating(args.in_data[0].type, "an optimizer", [&](auto tag) {
      using T = typename decltype(tag)::type;
      for (size_t n = 0; n < count; ++n) {
        const TBlob& weight = args.in_data[n];
        const int64_t size = weight.Size();
        if (size == 0) continue;
        const int64_t groups = weight.shape.ndim() > 0 ? weight.shape[0] : 1,
                      length = size / groups;
        ForRowsOfAnyLength(
            Device{args.ctx.run_ctx}, groups, length,
            UpdateGroup<T>{args.in_data.back().dptr<float>() + n * kNumScalars,
                           param_.clip_gradient, param_.epsilon, length, weight.dptr<T>(),
                           args.in_data[count + n].dptr<T>(), args.aux_states[n].dptr<T>(),
                           args.out_data[n].dptr<T>(), args.req[n]});
      }
    });
  }

 private:
  GroupAdagradParam param_;
};

}  // namespace mxtrain::optimizer_update

MXTRAIN_KERNELS(group_adagrad, Device, registry) {
  using namespace mxtrain;
  using namespace mxtrain::optimizer_update;
  registry.AddKernel(LastKernel<Device>(
      "group_adagrad_update",
      [](const OperatorProperty& base, const PlanRequest& request,
         Backend&) -> Expected<Plan, Refusal> {
        Plan plan = PlainPlan(base, request);
        plan.make = [param =
                         static_cast<const PropertyWithParam<GroupAdagradParam>&>(base).param()] {
          return std::make_unique<GroupAdagrad<Device>>(param);
        };
        return plan;
      }));
}
