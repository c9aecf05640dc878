// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of reductions and of their gradients, one group of elements at a time, in double.
// Written once for both devices: Device is OnCpu or OnGpu.
#include <limits>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operators/reduce/reduce.h"

namespace mxtrain::reduce {

// Each reduction, in double: initial value, step, combination of two parts, final value for n
// elements, and the factor of the head gradient at x, where y is the result.
struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr double kStart = 0;
  MXTRAIN_HD static double Step(double sum, double x) { return sum + x; }
  MXTRAIN_HD static double Join(double a, double b) { return a + b; }
  MXTRAIN_HD static double End(double sum, double) { return sum; }
  MXTRAIN_HD static double Slope(double, double, double) { return 1; }
};
struct Mean : Sum {
  static constexpr const char* kName = "mean";
  MXTRAIN_HD static double End(double sum, double n) { return sum / n; }
  MXTRAIN_HD static double Slope(double, double, double n) { return 1 / n; }
};
struct NanSum : Sum {
  static constexpr const char* kName = "nansum";
  MXTRAIN_HD static double Step(double sum, double x) { return x != x ? sum : sum + x; }
  MXTRAIN_HD static double Slope(double x, double, double) { return x != x ? 0 : 1; }
};
// The product without one factor: y / x.
struct Prod {
  static constexpr const char* kName = "prod";
  static constexpr double kStart = 1;
  MXTRAIN_HD static double Step(double product, double x) { return product * x; }
  MXTRAIN_HD static double Join(double a, double b) { return a * b; }
  MXTRAIN_HD static double End(double product, double) { return product; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return y / x; }
};
struct NanProd : Prod {
  static constexpr const char* kName = "nanprod";
  MXTRAIN_HD static double Step(double product, double x) { return x != x ? product : product * x; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return x != x ? 0 : y / x; }
};
struct Max {
  static constexpr const char* kName = "max";
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  MXTRAIN_HD static double Step(double best, double x) { return x > best || x != x ? x : best; }
  MXTRAIN_HD static double Join(double a, double b) { return Step(a, b); }
  MXTRAIN_HD static double End(double best, double) { return best; }
  MXTRAIN_HD static double Slope(double x, double y, double) { return x == y ? 1 : 0; }
};
struct Min : Max {
  static constexpr const char* kName = "min";
  static constexpr double kStart = std::numeric_limits<double>::infinity();
  MXTRAIN_HD static double Step(double best, double x) { return x < best || x != x ? x : best; }
  MXTRAIN_HD static double Join(double a, double b) { return Step(a, b); }
};

template <typename F>
struct JoinOf {
  MXTRAIN_HD double operator()(double a, double b) const { return F::Join(a, b); }
};

template <typename F, typename T, typename Team>
MXTRAIN_HD double ReduceGroup(const Team& team, const T* x, const Groups::Space& reduced) {
  double value = F::kStart;
  for (int64_t k = team.rank(); k < reduced.size; k += team.size())
    value = F::Step(value, static_cast<double>(x[reduced.Offset(k)]));
  return F::End(team.Fold(value, JoinOf<F>{}), static_cast<double>(reduced.size));
}

template <typename F, typename T>
struct ReduceRow {
  Groups groups;
  const T* x;
  T* y;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const double value = ReduceGroup<F>(team, x + groups.kept.Offset(i), groups.reduced);
    if (team.rank() == 0) Assign(req, y, i, static_cast<ComputeOf<T>>(value));
  }
};

// y[i] = the reduction of group i of x.
template <typename F, typename T, typename Device>
void ReduceGroups(const Device& device, const T* x, const Groups& groups, T* y, OpReqType req) {
  if (req != OpReqType::kNullOp)
    ForRows(device, groups.kept.size, groups.reduced.size, ReduceRow<F, T>{groups, x, y, req});
}

template <typename F, typename T>
MXTRAIN_HD void SpreadTo(OpReqType req, T* dx, int64_t at, double head, double slope) {
  Assign(req, dx, at, static_cast<ComputeOf<T>>(slope == 0 ? 0 : head * slope));
}

// A group whose slopes need elements and result, which is recomputed in double.
template <typename F, typename T>
struct SpreadRow {
  Groups groups;
  const T *head, *x;
  T* dx;
  OpReqType req;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t i) const {
    const int64_t at = groups.kept.Offset(i);
    const double n = static_cast<double>(groups.reduced.size),
                 y = ReduceGroup<F>(team, x + at, groups.reduced);
    for (int64_t k = team.rank(); k < groups.reduced.size; k += team.size()) {
      const int64_t j = at + groups.reduced.Offset(k);
      SpreadTo<F>(req, dx, j, static_cast<double>(head[i]),
                  F::Slope(static_cast<double>(x[j]), y, n));
    }
  }
};
// An element whose slope is constant.
template <typename F, typename T>
struct SpreadElement {
  Groups groups;
  const T* head;
  T* dx;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t index) const {
    const int64_t i = index / groups.reduced.size, k = index % groups.reduced.size;
    const double slope = F::Slope(0, 0, static_cast<double>(groups.reduced.size));
    SpreadTo<F>(req, dx, groups.kept.Offset(i) + groups.reduced.Offset(k),
                static_cast<double>(head[i]), slope);
  }
};

// in_grad = head * Slope(x, result, n). Without x (null) the slope is constant.
template <typename F, typename T, typename Device>
void SpreadHead(const Device& device, const TBlob& head, const T* x, const Groups& groups,
                TBlob* in_grad, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  if (x) {
    ForRows(device, groups.kept.size, groups.reduced.size,
            SpreadRow<F, T>{groups, head.dptr<T>(), x, in_grad->dptr<T>(), req});
  } else {
    Launch(device, groups.kept.size * groups.reduced.size,
           SpreadElement<F, T>{groups, head.dptr<T>(), in_grad->dptr<T>(), req});
  }
}

template <typename Device, typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  const Groups groups = MakeGroups(src.shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ReduceGroups<F>(Device{ctx}, static_cast<const T*>(src.dptr<T>()), groups, ret->dptr<T>(), req);
  });
}
template <typename Device, typename F>
void Gradient(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  const Groups groups = MakeGroups(in_grad->shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SpreadHead<F, T>(Device{ctx}, head.data, in.data.dptr<T>(), groups, in_grad, req);
  });
}
// For sums and means, which need no element.
template <typename Device, typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
                    RunContext ctx) {
  const Groups groups = MakeGroups(in_grad->shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SpreadHead<F, T>(Device{ctx}, head.data, nullptr, groups, in_grad, req);
  });
}

// v(Functor{}) for every reduction.
template <typename V>
void ForEachReduction(V&& v) {
  v(Sum{}), v(Mean{}), v(NanSum{}), v(Prod{}), v(NanProd{}), v(Max{}), v(Min{});
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  ForEachReduction([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kName);
    op.set_function(Device::kType, Forward<Device, F>, kNoInplace);
    if constexpr (std::is_same_v<F, Sum> || std::is_same_v<F, Mean>) {
      op.set_gradient(Device::kType, GradientOfHead<Device, F>, kNoInplace);
    } else {
      op.set_gradient(Device::kType, Gradient<Device, F>, kNoInplace);
    }
  });
}

}  // namespace mxtrain::reduce
