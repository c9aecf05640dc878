#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operators/reduce/reduce.h"

namespace mxtrain::reduce {
namespace {

// Each reduction: a start, a step, an end for n elements, and the factor of the head gradient at x, where y is the result. In double.
struct Sum {
  static constexpr const char* kName = "sum";
  static constexpr double kStart = 0;
  static double Step(double sum, double x) { return sum + x; }
  static double End(double sum, double) { return sum; }
  static double Slope(double, double, double) { return 1; }
};
struct Mean : Sum {
  static constexpr const char* kName = "mean";
  static double End(double sum, double n) { return sum / n; }
  static double Slope(double, double, double n) { return 1 / n; }
};
struct NanSum : Sum {
  static constexpr const char* kName = "nansum";
  static double Step(double sum, double x) { return std::isnan(x) ? sum : sum + x; }
  static double Slope(double x, double, double) { return std::isnan(x) ? 0 : 1; }
};
// Without one factor: y / x.
struct Prod {
  static constexpr const char* kName = "prod";
  static constexpr double kStart = 1;
  static double Step(double product, double x) { return product * x; }
  static double End(double product, double) { return product; }
  static double Slope(double x, double y, double) { return y / x; }
};
struct NanProd : Prod {
  static constexpr const char* kName = "nanprod";
  static double Step(double product, double x) { return std::isnan(x) ? product : product * x; }
  static double Slope(double x, double y, double) { return std::isnan(x) ? 0 : y / x; }
};
struct Max {
  static constexpr const char* kName = "max";
  static constexpr double kStart = -std::numeric_limits<double>::infinity();
  static double Step(double best, double x) { return x > best || std::isnan(x) ? x : best; }
  static double End(double best, double) { return best; }
  static double Slope(double x, double y, double) { return x == y ? 1 : 0; }
};
struct Min : Max {
  static constexpr const char* kName = "min";
  static constexpr double kStart = std::numeric_limits<double>::infinity();
  static double Step(double best, double x) { return x < best || std::isnan(x) ? x : best; }
};

template <typename F>
TShape Shape(const TShape& src, const EnvArguments& env) {
  return ReducedShape(src, env.As<ReduceParam>(), F::kName);
}

template <typename F, typename T>
double ReduceGroup(const T* x, const Groups::Space& reduced) {
  double value = F::kStart;
  for (int64_t k = 0; k < reduced.size; ++k) value = F::Step(value, static_cast<double>(x[reduced.Offset(k)]));
  return F::End(value, static_cast<double>(reduced.size));
}

int64_t GrainOf(const Groups& groups) {
  return std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, groups.reduced.size));
}

template <typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const Groups groups = MakeGroups(src.shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* x = src.dptr<T>();
    T* y = ret->dptr<T>();
    ParallelFor(groups.kept.size, GrainOf(groups), [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        Assign(req, y, i, static_cast<ComputeOf<T>>(ReduceGroup<F>(x + groups.kept.Offset(i), groups.reduced)));
      }
    });
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

template <typename F>
void Gradient(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  const Groups groups = MakeGroups(in_grad->shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SpreadHead<F, T>(head.data, in.data.dptr<T>(), groups, in_grad, req);
  });
}
// Of sums and means, which need no element.
template <typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  const Groups groups = MakeGroups(in_grad->shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SpreadHead<F, T>(head.data, nullptr, groups, in_grad, req);
  });
}

template <typename F>
SimpleOp AddForward(OperatorRegistry& registry) {
  SimpleOp op(registry, F::kName);
  op.set_function(DeviceType::kCPU, Forward<F>, kNoInplace).set_shape_function(Shape<F>).set_types(kFloatingTypes);
  return op;
}

}  // namespace

MXTRAIN_OPERATOR(reduce_cpu, registry) {
  AddForward<Sum>(registry).set_gradient(DeviceType::kCPU, GradientOfHead<Sum>, kNoInplace);
  AddForward<Mean>(registry).set_gradient(DeviceType::kCPU, GradientOfHead<Mean>, kNoInplace);
  AddForward<NanSum>(registry).set_gradient(DeviceType::kCPU, Gradient<NanSum>, kNoInplace);
  AddForward<Prod>(registry).set_gradient(DeviceType::kCPU, Gradient<Prod>, kNoInplace);
  AddForward<NanProd>(registry).set_gradient(DeviceType::kCPU, Gradient<NanProd>, kNoInplace);
  AddForward<Max>(registry).set_gradient(DeviceType::kCPU, Gradient<Max>, kNoInplace);
  AddForward<Min>(registry).set_gradient(DeviceType::kCPU, Gradient<Min>, kNoInplace);
}

}  // namespace mxtrain::reduce
