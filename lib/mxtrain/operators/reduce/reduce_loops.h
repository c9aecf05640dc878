#pragma once
// The loops of reductions and of their gradients on the CPU, a group of elements at a time, in double.
#include <algorithm>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/reduce/reduce.h"

namespace mxtrain::reduce {

// Each reduction: a start, a step, an end for n elements, and the factor of the head gradient at x, where y is the result. In double.
struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr double kStart = 0;
  static double Step(double sum, double x) { return sum + x; }
  static double End(double sum, double) { return sum; }
  static double Slope(double, double, double) { return 1; }
};

template <typename F, typename T>
double ReduceGroup(const T* x, const Groups::Space& reduced) {
  double value = F::kStart;
  for (int64_t k = 0; k < reduced.size; ++k) value = F::Step(value, static_cast<double>(x[reduced.Offset(k)]));
  return F::End(value, static_cast<double>(reduced.size));
}

inline int64_t GrainOf(const Groups& groups) {
  return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, groups.reduced.size));
}

// y[i] = the reduction of group i of x.
template <typename F, typename T>
void ReduceGroups(const T* x, const Groups& groups, T* y, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  ParallelFor(groups.kept.size, GrainOf(groups), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      Assign(req, y, i, static_cast<ComputeOf<T>>(ReduceGroup<F>(x + groups.kept.Offset(i), groups.reduced)));
    }
  });
}

// in_grad = head * Slope(x, result, n), a group at a time; the result is found anew, in double.
template <typename F, typename T>
void SpreadHead(const TBlob& head, const T* x, const Groups& groups, TBlob* in_grad, OpReqType req) {
  const T* g = head.dptr<T>();
  T* dx = in_grad->dptr<T>();
  const double n = static_cast<double>(groups.reduced.size);
  ParallelFor(groups.kept.size, GrainOf(groups), [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t at = groups.kept.Offset(i);
      const double y = x ? ReduceGroup<F>(x + at, groups.reduced) : 0;
      for (int64_t k = 0; k < groups.reduced.size; ++k) {
        const int64_t j = at + groups.reduced.Offset(k);
        const double slope = F::Slope(x ? static_cast<double>(x[j]) : 0, y, n);
        Assign(req, dx, j, static_cast<ComputeOf<T>>(slope == 0 ? 0 : static_cast<double>(g[i]) * slope));
      }
    }
  });
}

}  // namespace mxtrain::reduce
