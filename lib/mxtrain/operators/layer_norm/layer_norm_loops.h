// SPDX-License-Identifier: Apache-2.0
#pragma once
// LayerNorm, RMSNorm and _NormalizeRows, written once for all devices.
#include <cmath>
#include <memory>

#include "mxtrain/operator/channel_moments.h"
#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/layer_norm/row_moments.h"

namespace mxtrain::layer_norm {

using P = RowNormProperty;

using Sums = TwoSums;

// y = the normalized row times gamma plus beta, or += it. y may be x.
template <typename T>
struct ForwardRow {
  using A = AccumulatorOf<T>;
  static constexpr int kPack = kPackOf<T>;
  using Pack = ChannelPack<T, kPack>;
  RowView view;
  bool centred;
  double eps;
  const T* x;
  const A *gamma, *beta;  // null: 1 and 0
  RowMoments<A>* saved;   // null without a backward pass
  A *mean, *deviation;    // null if the operator has no such outputs
  T* y;
  OpReqType mean_req, deviation_req, req;

  bool Aligned() const { return TakesPacks(x) && TakesPacks(y); }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const int64_t first = view.First(row), step = view.inner;
    double average = 0;
    if (centred) {
      for (int64_t k = team.rank(); k < view.length; k += team.size())
        average += static_cast<double>(x[first + k * step]);
      average = team.Fold(average, AddBoth{}) / length();
    }
    double squares = 0;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const double distance = static_cast<double>(x[first + k * step]) - average;
      squares += distance * distance;
    }
    const auto moments = PutMoments(team, row, average, team.Fold(squares, AddBoth{}) / length());
    if (req == OpReqType::kNullOp) return;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      Assign(req, y, i, Result(moments, static_cast<A>(x[i]), k));
    }
  }

  // The same by packs. What a pack adds to a sum is computed in A, of distances: from an element of
  // the row, then from the mean.
  template <typename Team>
  MXTRAIN_HD void ByPacks(const Team& team, int64_t row) const {
    const T* const from = x + row * view.length;
    double average = 0;
    if (centred) {
      const A origin = A(from[0]);
      ForOwnPacks(team, [&](int64_t at) {
        const Pack pack = Pack::At(from + at);
        A few = 0;
        ForPack<kPack>([&](int k) { few += A(pack.v[k]) - origin; });
        average += static_cast<double>(few);
      });
      average = team.Fold(average, AddBoth{}) / length() + static_cast<double>(origin);
    }
    const A center = static_cast<A>(average);
    double squares = 0;
    ForOwnPacks(team, [&](int64_t at) {
      const Pack pack = Pack::At(from + at);
      A few = 0;
      ForPack<kPack>([&](int k) {
        const A distance = A(pack.v[k]) - center;
        few += distance * distance;
      });
      squares += static_cast<double>(few);
    });
    squares = team.Fold(squares, AddBoth{});
    // Squares that a float does not hold.
    if (!(squares > kLeastSquares && squares < kMostSquares)) return (*this)(team, row);
    const double rounded = average - static_cast<double>(center);
    const double variance = squares / length() - rounded * rounded;
    const auto moments = PutMoments(team, row, average, variance < 0 ? 0 : variance);
    if (req == OpReqType::kNullOp) return;
    T* const to = y + row * view.length;
    ForOwnPacks(team, [&](int64_t at) {
      const Pack pack = Pack::At(from + at);
      Pack result{};
      if (req == OpReqType::kAddTo) result = Pack::At(to + at);
      ForPack<kPack>(
          [&](int k) { Assign(req, result.v, k, Result(moments, A(pack.v[k]), at + k)); });
      result.Put(to + at);
    });
  }

 private:
  static constexpr double kLeastSquares = 1e-30, kMostSquares = 1e36;

  MXTRAIN_HD double length() const { return static_cast<double>(view.length); }
  MXTRAIN_HD A Result(const RowMoments<A>& moments, A element, int64_t k) const {
    A value = moments.Normalized(element);
    if (gamma) value *= gamma[k];
    if (beta) value += beta[k];
    return value;
  }
  template <typename Team, typename F>
  MXTRAIN_HD void ForOwnPacks(const Team& team, const F& f) const {
    for (int64_t at = team.rank() * kPack; at < view.length; at += team.size() * kPack) f(at);
  }
  template <typename Team>
  MXTRAIN_HD RowMoments<A> PutMoments(const Team& team, int64_t row, double average,
                                      double variance) const {
    const double spread = std::sqrt(variance + eps);
    const auto moments = RowMoments<A>::Of(average, spread);
    if (team.rank() == 0) {
      if (saved) saved[row] = moments;
      if (mean_req != OpReqType::kNullOp) Assign(mean_req, mean, row, static_cast<A>(average));
      if (deviation_req != OpReqType::kNullOp)
        Assign(deviation_req, deviation, row, static_cast<A>(spread));
    }
    return moments;
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
    return NormalOf(static_cast<A>(value[i]), of);
  }
  MXTRAIN_HD A NormalOf(A element, const RowMoments<A>& of) const {
    return normalized ? element : of.Normalized(element);
  }
};

// The gradient of the data, or += it. dx may be the head gradient.
template <typename T>
struct BackwardRow {
  using A = AccumulatorOf<T>;
  static constexpr int kPack = kPackOf<T>;
  using Pack = ChannelPack<T, kPack>;
  BackwardSource<T> source;
  bool centred;
  const A* gamma;  // null: 1
  T* dx;
  OpReqType req;

  bool Aligned() const {
    return TakesPacks(source.head) && TakesPacks(source.value) && TakesPacks(dx);
  }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    const RowView& view = source.view;
    const int64_t first = view.First(row), step = view.inner;
    const RowMoments<A> moments = source.moments[row];
    Sums sums;
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      const double g = static_cast<double>(Slope(source.Head(i), k));
      sums = sums + Sums{g, g * static_cast<double>(source.Normal(i, moments))};
    }
    const Means means = MeansOf(team, sums);
    for (int64_t k = team.rank(); k < view.length; k += team.size()) {
      const int64_t i = first + k * step;
      Assign(req, dx, i,
             means.Of(Slope(source.Head(i), k), source.Normal(i, moments)) * moments.inverse);
    }
  }

  // As ForwardRow's.
  template <typename Team>
  MXTRAIN_HD void ByPacks(const Team& team, int64_t row) const {
    const int64_t length = source.view.length, first = row * length;
    const RowMoments<A> moments = source.moments[row];
    const auto for_packs = [&](const auto& f) {
      for (int64_t at = team.rank() * kPack; at < length; at += team.size() * kPack)
        f(at, Pack::At(source.head + first + at), Pack::At(source.value + first + at));
    };
    Sums sums;
    for_packs([&](int64_t at, const Pack& head, const Pack& value) {
      FewSums<A> few{0, 0};
      ForPack<kPack>([&](int k) {
        const A g = Slope(A(head.v[k]), at + k);
        few = few + FewSums<A>{g, g * source.NormalOf(A(value.v[k]), moments)};
      });
      sums = sums + few;
    });
    const Means means = MeansOf(team, sums);
    if (!(std::abs(means.slope) < kMost && std::abs(means.along) < kMost))
      return (*this)(team, row);  // sums that a float does not hold
    for_packs([&](int64_t at, const Pack& head, const Pack& value) {
      Pack result{};
      if (req == OpReqType::kAddTo) result = Pack::At(dx + first + at);
      ForPack<kPack>([&](int k) {
        const A slope = Slope(A(head.v[k]), at + k);
        Assign(req, result.v, k,
               means.Of(slope, source.NormalOf(A(value.v[k]), moments)) * moments.inverse);
      });
      result.Put(dx + first + at);
    });
  }

 private:
  static constexpr A kMost = A(1e36);
  // Of a row: what is subtracted from its slopes.
  struct Means {
    A slope, along;
    MXTRAIN_HD A Of(A g, A normal) const { return g - slope - normal * along; }
  };
  template <typename Team>
  MXTRAIN_HD Means MeansOf(const Team& team, const Sums& own) const {
    const Sums sums = team.Fold(own, AddBoth{});
    const double length = static_cast<double>(source.view.length);
    return {static_cast<A>(centred ? sums.first / length : 0),
            static_cast<A>(sums.second / length)};
  }
  MXTRAIN_HD A Slope(A head, int64_t k) const { return gamma ? head * gamma[k] : head; }
};

// The elements of gamma and beta are the channels of the data.
inline ChannelView ChannelsOf(const RowView& view) {
  return {view.outer, view.length, view.inner};
}

// Terms of the gradients of gamma and beta, for SumChannels: the head gradient, and its product
// with the normalized row.
template <typename T>
class ParameterTerms {
 public:
  using A = AccumulatorOf<T>;
  explicit ParameterTerms(const BackwardSource<T>& source)
      : source_(source),
        inner_(source.view.inner),
        block_(source.view.length * source.view.inner) {}
  MXTRAIN_HD int64_t Of(int64_t channel) const { return channel; }
  MXTRAIN_HD Sums operator()(int64_t place, int64_t) const {
    const double g = static_cast<double>(source_.Head(place));
    return {g, g * static_cast<double>(source_.Normal(place, MomentsOf(place)))};
  }

  static constexpr int kPack = kPackOf<T> / 2;  // of fewer registers
  struct Pack {
    ChannelPack<T, kPack> head, value;
    RowMoments<A> moments;
  };
  bool Aligned() const { return TakesPacks(source_.head) && TakesPacks(source_.value); }
  MXTRAIN_HD Pack ReadPack(int64_t place) const {
    using Elements = ChannelPack<T, kPack>;
    return {Elements::At(source_.head + place), Elements::At(source_.value + place),
            MomentsOf(place)};
  }
  MXTRAIN_HD FewSums<A> Term(const Pack& pack, int k, int64_t) const {
    const A g = A(pack.head.v[k]);
    return {g, g * source_.NormalOf(A(pack.value.v[k]), pack.moments)};
  }

 private:
  MXTRAIN_HD const RowMoments<A>& MomentsOf(int64_t place) const {
    int64_t outer = 0, within = 0, rest = 0;
    block_.Divide(place, &outer, &rest);
    inner_.Divide(rest, &rest, &within);
    return source_.moments[outer * source_.view.inner + within];
  }

  BackwardSource<T> source_;
  FastDivider inner_, block_;
};
// Element k of the gradients of gamma and beta.
template <typename A>
struct PutGradients {
  A *gamma_grad, *beta_grad;
  OpReqType gamma_req, beta_req;
  const Sums* sums;
  MXTRAIN_HD void operator()(int64_t k) const {
    if (gamma_req != OpReqType::kNullOp)
      Assign(gamma_req, gamma_grad, k, static_cast<A>(sums[k].second));
    if (beta_req != OpReqType::kNullOp)
      Assign(beta_req, beta_grad, k, static_cast<A>(sums[k].first));
  }
};

template <typename F>
struct RowByPacks {
  F f;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t row) const {
    f.ByPacks(team, row);
  }
};

// f(team, row) for every row, on a GPU f.ByPacks(team, row) where the arrays allow it.
template <typename Device, typename F>
void ForEachRow(const Device& device, const RowView& view, const F& f) {
  if constexpr (Device::kType == DeviceType::kGPU) {
    if (view.inner == 1 && view.length > 0 && view.length % F::kPack == 0 && f.Aligned())
      return ForRows(device, view.rows(), view.length / F::kPack, RowByPacks<F>{f});
  }
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
      if (put.gamma_req != OpReqType::kNullOp || put.beta_req != OpReqType::kNullOp) {
        put.sums = SumChannels<Sums>(device, ChannelsOf(view_), ParameterTerms<T>(source),
                                     args.ctx.workspace);
        Launch(device, view_.length, put);
      }
    }
    if (args.req[P::kData] == OpReqType::kNullOp) return;
    ForEachRow(device, view_,
               BackwardRow<T>{source, IsCentred(norm_), gamma, args.in_grad[P::kData].dptr<T>(),
                              args.req[P::kData]});
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
      plan.backward_workspace = BytesOfChannelSums<Sums>(ChannelsOf(view));
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
