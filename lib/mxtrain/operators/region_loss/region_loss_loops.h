// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <memory>

#include "mxtrain/operator/matched_object.h"
#include "mxtrain/operator/operator.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/region_scores.h"
#include "mxtrain/operator/sum_images.h"
#include "mxtrain/operators/region_loss/region_loss.h"

namespace mxtrain::region_loss {

template <typename T>
struct Terms {
  using C = ComputeOf<T>;
  // Targets are float32 beside narrow scores.
  using L = std::conditional_t<std::is_same_v<T, double>, double, float>;
  RegionScores<T> says;
  const L* targets;
  C box_weight;
  const C* share;  // [1]: N / max(S, 1)

  MXTRAIN_HD const L* Target(int64_t row) const {
    return targets + row * RegionLossProperty::kTargetColumns;
  }
  // The column of its class: 0 of the background, -1: there is no region.
  MXTRAIN_HD int64_t ColumnOf(int64_t row) const {
    const L label = Target(row)[0];
    return label >= L(0) && label < static_cast<L>(says.columns) ? static_cast<int64_t>(label) : -1;
  }
  MXTRAIN_HD C Excess(int64_t row, int64_t column, int k) const {
    return says.Offset(row, column, k) - static_cast<C>(Target(row)[k + 1]);
  }
  MXTRAIN_HD C LossOf(int64_t row) const {
    constexpr C kBeta = static_cast<C>(RegionLossProperty::kBeta);
    const int64_t column = ColumnOf(row);
    if (column < 0) return C(0);
    C loss = says.LogSum(row) - says.Score(row, column);
    for (int k = 0; column > 0 && k < 4; ++k)
      loss += box_weight * SmoothL1Of(Excess(row, column, k), kBeta);
    return loss;
  }
};

template <typename T>
struct FindShare {
  Terms<T> terms;
  ComputeOf<T>* share;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t) const {
    using C = ComputeOf<T>;
    int64_t count = 0;
    for (int64_t row = team.rank(); row < terms.says.rows(); row += team.size())
      count += terms.ColumnOf(row) >= 0 ? 1 : 0;
    count = team.Fold(count, AddBoth{});
    if (team.rank() == 0) *share = ShareOfImage<C>(terms.says.images, count);
  }
};

// The gradients of the scores and offsets of a region.
template <typename T>
struct DifferentiateRegion {
  using C = ComputeOf<T>;
  Terms<T> terms;
  C scale;
  OpReqType req[2];
  T *scores, *offsets;

  MXTRAIN_HD void operator()(int64_t row) const {
    constexpr C kBeta = static_cast<C>(RegionLossProperty::kBeta);
    const int64_t own = terms.ColumnOf(row);
    const C factor = own < 0 ? C(0) : scale * *terms.share;
    const C log_sum = own < 0 ? C(0) : terms.says.LogSum(row);
    for (int64_t column = 0; column < terms.says.columns; ++column) {
      if (req[0] != OpReqType::kNullOp) {
        C slope = C(0);
        if (own >= 0)
          slope = vector_math::Exp(terms.says.Score(row, column) - log_sum) - C(column == own);
        Assign(req[0], scores, row * terms.says.columns + column, factor * slope);
      }
      for (int k = 0; req[1] != OpReqType::kNullOp && k < 4; ++k) {
        const bool learnt = own > 0 && column == own;
        const C slope = learnt ? SmoothL1Slope(terms.Excess(row, column, k), kBeta) : C(0);
        Assign(req[1], offsets, terms.says.OffsetIndex(row, column, k),
               factor * terms.box_weight * slope);
      }
    }
  }
};

template <typename Device>
class RegionLoss final : public Operator {
 public:
  explicit RegionLoss(const RegionLossParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    const TBlob& out = args.out_data[0];
    if (args.req[0] == OpReqType::kNullOp || out.Size() == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(out.type, "RegionLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Terms<T> terms = TermsOf<T>(device, args.in_data, args.ctx.workspace);
      ForRows(device, terms.says.images, terms.says.regions * terms.says.columns,
              SumImages<T, Terms<T>>{terms, terms.says.regions, terms.share, args.req[0],
                                     out.template dptr<T>()});
    });
  }

  void Backward(const BackwardArgs& args) override {
    using P = RegionLossProperty;
    const TBlob& scores = args.in_data[P::kScores];
    if (scores.Size() == 0) return;
    const Device device{args.ctx.run_ctx};
    SwitchFloating(scores.type, "RegionLoss", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Terms<T> terms = TermsOf<T>(device, args.in_data, args.ctx.workspace);
      Launch(device, terms.says.rows(),
             DifferentiateRegion<T>{terms,
                                    static_cast<ComputeOf<T>>(param_.grad_scale),
                                    {args.req[P::kScores], args.req[P::kOffsets]},
                                    static_cast<T*>(args.in_grad[P::kScores].data),
                                    static_cast<T*>(args.in_grad[P::kOffsets].data)});
    });
  }

 private:
  template <typename T>
  Terms<T> TermsOf(const Device& device, std::span<const TBlob> in, const TBlob& workspace) const {
    using P = RegionLossProperty;
    using C = ComputeOf<T>;
    C* const share = workspace.dptr<C>();
    const Terms<T> terms{RegionScores<T>(in[P::kScores], in[P::kOffsets]),
                         static_cast<const typename Terms<T>::L*>(in[P::kTargets].data),
                         static_cast<C>(param_.box_weight), share};
    ForRows(device, 1, terms.says.rows(), FindShare<T>{terms, share});
    return terms;
  }

  const RegionLossParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = static_cast<int64_t>(sizeof(double));
  if (request.needs_backward) plan.backward_workspace = plan.forward_workspace;
  plan.make = [param = static_cast<const RegionLossProperty&>(base).param()] {
    return std::make_unique<RegionLoss<Device>>(param);
  };
  return plan;
}

}  // namespace mxtrain::region_loss

MXTRAIN_KERNELS(region_loss, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("RegionLoss", region_loss::MakePlan<Device>));
}
