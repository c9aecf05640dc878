// SPDX-License-Identifier: Apache-2.0
#pragma once
// LayerNorm, RMSNorm and _NormalizeRows, written once for all devices.
#include <cmath>
#include <memory>

#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/two_sums.h"
#include "mxtrain/operators/layer_norm/row_moments.h"

namespace mxtrain::layer_norm {

using P = RowNormProperty;

using Sums = TwoSums;

// y = the normalized row times gamma plus beta, or += it. y may be x.
template <typename T>
struct ForwardRow {
  using A = AccumulatorOf<T>;
  RowView view;
  bool centred;
  double eps;
  const T* x;
  const A *gamma, *beta;  // null: 1 and 0
  RowMoments<A>* saved;   // null without a backward pass
  A *mean, *deviation;    // null if the operator has no such outputs
  T* y;
  OpReqType mean_req, deviation_req, req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t first = view.First(row), step = view.inner;
    const double length = static_cast<double>(view.length);
    double average = 0;
    if (centred) {
      for (int64_t k = team.rank(); k < view.length; k += team.size())
        average += static_cast<double>(x[first + k * step]);
      average = team.Fold(average, AddBoth{}) / length;
    }
    double squares = 0;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const double distance = static_cast<double>(x[first + k * step]) - average;
      squares += distance * distance;
    }
    const double spread = std::sqrt(team.Fold(squares, AddBoth{}) / length + eps);
    const auto moments = RowMoments<A>::Of(average, spread);
    if (team.rank() == 0) {
      if (saved) saved[row] = moments;
      if (mean_req != OpReqType::kNullOp) Assign(mean_req, mean, row, static_cast<A>(average));
      if (deviation_req != OpReqType::kNullOp)
        Assign(deviation_req, deviation, row, static_cast<A>(spread));
    }
    if (req == OpReqType::kNullOp) return;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      A value = moments.Normalized(static_cast<A>(x[i]));
      if (gamma) value *= gamma[k];
      if (beta) value += beta[k];
      Assign(req, y, i, value);
    }
  }
};

// What backward reads.
template <typename T>
struct BackwardSource {
  using A = AccumulatorOf<T>;
  RowView view;
  const T* head;
  const T* value;  // the data, or the output if that is the normalized row
  bool normalized;
  const RowMoments<A>* moments;
  MXTRAIN_HD A Head(int64_t i) const { return static_cast<A>(head[i]); }
  MXTRAIN_HD A Normal(int64_t i, const RowMoments<A>& of) const {
    return normalized ? static_cast<A>(value[i]) : of.Normalized(static_cast<A>(value[i]));
  }
};

// The gradient of the data, or += it. dx may be the head gradient.
template <typename T>
struct BackwardRow {
  using A = AccumulatorOf<T>;
  BackwardSource<T> source;
  bool centred;
  const A* gamma;  // null: 1
  T* dx;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const RowView& view = source.view;
    const int64_t first = view.First(row), step = view.inner;
    const RowMoments<A> moments = source.moments[row];
    Sums sums;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      const double g = static_cast<double>(Slope(i, k));
      sums = sums + Sums{g, g * static_cast<double>(source.Normal(i, moments))};
    }
    sums = team.Fold(sums, AddBoth{});
    const double length = static_cast<double>(view.length);
    const A mean = static_cast<A>(centred ? sums.first / length : 0),
            along = static_cast<A>(sums.second / length);
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      const A distance = Slope(i, k) - mean - source.Normal(i, moments) * along;
      Assign(req, dx, i, distance * moments.inverse);
    }
  }
  MXTRAIN_HD A Slope(int64_t i, int64_t k) const {
    return gamma ? source.Head(i) * gamma[k] : source.Head(i);
  }
};

// How the rows are divided for the gradients of gamma and beta.
inline Slices SlicesOf(const RowView& view) {
  return view.inner > 1 ? Slices(view.length, view.rows())
                        : Slices::OfColumns(view.length, view.rows());
}

// Sums over a slice of the rows, for one element of gamma and beta: of the head gradient, and of
// its product with the normalized row.
template <typename T>
struct ParameterPart {
  using A = AccumulatorOf<T>;
  BackwardSource<T> source;
  FastDivider inner;
  Slices slices;
  Sums* parts;  // [length, slices]

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const RowView& view = source.view;
    // Neighbouring teams read neighbouring elements if a team's own are not neighbours.
    const int64_t k = view.inner > 1 ? task / slices.count : task % view.length,
                  slice = view.inner > 1 ? task % slices.count : task / view.length;
    Sums sums;
    const int64_t end = slices.Begin(slice + 1);
    for (int64_t row = slices.Begin(slice) + team.rank(); row < end; row += team.size()) {
      int64_t outer, within;
      inner.Divide(row, &outer, &within);
      const int64_t i = (outer * view.length + k) * view.inner + within;
      const double g = static_cast<double>(source.Head(i));
      sums = sums + Sums{g, g * static_cast<double>(source.Normal(i, source.moments[row]))};
    }
    sums = team.Fold(sums, AddBoth{});
    if (team.rank() == 0) parts[k * slices.count + slice] = sums;
  }
};
// Of one channel.
template <typename A>
struct PutGradients {
  A *gamma_grad, *beta_grad;
  OpReqType gamma_req, beta_req;
  MXTRAIN_HD void operator()(int64_t k, const Sums& sums) const {
    if (gamma_req != OpReqType::kNullOp)
      Assign(gamma_req, gamma_grad, k, static_cast<A>(sums.second));
    if (beta_req != OpReqType::kNullOp) Assign(beta_req, beta_grad, k, static_cast<A>(sums.first));
  }
};

// f(team, row) for every row.
template <typename Device, typename F>
void ForEachRow(const Device& device, const RowView& view, const F& f) {
  if (view.inner > 1) {
    ForColumns(device, view.rows(), view.length, f);
  } else {
    ForRows(device, view.rows(), view.length, f);
  }
}

template <typename Device>
class RowNormReference final : public Operator {
 public:
  RowNormReference(RowNorm norm, double eps, const RowView& view)
      : norm_(norm), eps_(eps), view_(view) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[P::kData].type, "LayerNorm",
                   [&](auto tag) { ForwardOf<typename decltype(tag)::type>(args); });
  }
  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.out_grad[P::kOutput].type, "LayerNorm",
                   [&](auto tag) { BackwardOf<typename decltype(tag)::type>(args); });
  }

 private:
  template <typename T>
  void ForwardOf(const ForwardArgs& args) const {
    using A = AccumulatorOf<T>;
    ForwardRow<T> row{};
    row.view = view_;
    row.centred = IsCentred(norm_);
    row.eps = eps_;
    row.x = args.in_data[P::kData].dptr<T>();
    if (HasGamma(norm_)) row.gamma = args.in_data[P::kGamma].dptr<A>();
    if (HasBeta(norm_)) row.beta = args.in_data[P::kBeta].dptr<A>();
    if (!args.ctx.saved.empty()) row.saved = args.ctx.saved[0].dptr<RowMoments<A>>();
    row.y = args.out_data[P::kOutput].dptr<T>();
    row.req = args.req[P::kOutput];
    row.mean_req = row.deviation_req = OpReqType::kNullOp;
    if (args.out_data.size() > 1) {
      row.mean = args.out_data[P::kMean].dptr<A>();
      row.mean_req = args.req[P::kMean];
      row.deviation = args.out_data[P::kDeviation].dptr<A>();
      row.deviation_req = args.req[P::kDeviation];
    }
    ForEachRow(Device{args.ctx.run_ctx}, view_, row);
  }

  // The gradients of gamma and beta come first: that of the data may overwrite the head gradient.
  template <typename T>
  void BackwardOf(const BackwardArgs& args) const {
    using A = AccumulatorOf<T>;
    const Device device{args.ctx.run_ctx};
    const bool normalized = ReadsOutput(norm_);
    const TBlob& value = normalized ? args.out_data[P::kOutput] : args.in_data[P::kData];
    const BackwardSource<T> source{view_, args.out_grad[P::kOutput].dptr<T>(), value.dptr<T>(),
                                   normalized, args.ctx.saved[0].dptr<RowMoments<A>>()};
    const A* gamma = HasGamma(norm_) ? args.in_data[P::kGamma].dptr<A>() : nullptr;
    if (HasGamma(norm_)) {
      PutGradients<A> put{};
      put.gamma_req = args.req[P::kGamma];
      put.beta_req = HasBeta(norm_) ? args.req[P::kBeta] : OpReqType::kNullOp;
      put.gamma_grad = args.in_grad[P::kGamma].dptr<A>();
      if (HasBeta(norm_)) put.beta_grad = args.in_grad[P::kBeta].dptr<A>();
      if (put.gamma_req != OpReqType::kNullOp || put.beta_req != OpReqType::kNullOp)
        SumOverRows(device, source, args.ctx.workspace.dptr<Sums>(), put);
    }
    if (args.req[P::kData] == OpReqType::kNullOp) return;
    ForEachRow(device, view_,
               BackwardRow<T>{source, IsCentred(norm_), gamma, args.in_grad[P::kData].dptr<T>(),
                              args.req[P::kData]});
  }

  template <typename T, typename A>
  void SumOverRows(const Device& device, const BackwardSource<T>& source, Sums* parts,
                   const PutGradients<A>& put) const {
    const Slices slices = SlicesOf(view_);
    const ParameterPart<T> part{source, FastDivider(view_.inner), slices, parts};
    const int64_t tasks = view_.length * slices.count;
    if (view_.inner > 1) {
      ForRows(device, tasks, slices.longest(), part);
    } else {
      ForColumns(device, tasks, slices.longest(), part);
    }
    ForRows(device, view_.length, slices.count,
            JoinParts<Sums, PutGradients<A>>{slices.count, parts, put});
  }

  RowNorm norm_;
  double eps_;
  RowView view_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const RowNormProperty&>(base);
  const TensorSpec& data = request.in[P::kData];
  const RowView view = property.View(data.shape);
  Plan plan = PlainPlan(base, request);
  if (request.needs_backward) {
    plan.saved = {view.rows() * MomentsBytes(data.type)};
    if (HasGamma(property.norm()))
      plan.backward_workspace =
          view.length * SlicesOf(view).count * static_cast<int64_t>(sizeof(Sums));
  }
  plan.make = [norm = property.norm(), eps = property.eps(), view] {
    return std::make_unique<RowNormReference<Device>>(norm, eps, view);
  };
  return plan;
}

}  // namespace mxtrain::layer_norm

MXTRAIN_KERNELS(layer_norm, Device, registry) {
  for (const char* name : {"LayerNorm", "RMSNorm", "_NormalizeRows"})
    registry.AddKernel(mxtrain::LastKernel<Device>(name, mxtrain::layer_norm::MakePlan<Device>));
}
