#include <cmath>
#include <limits>

#include "mxtrain/operator/simple_op.h"
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::reduce {
namespace {

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

template <typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const Groups groups = MakeGroups(src.shape, env.As<ReduceParam>(), F::kName);
  SwitchFloating(src.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    ReduceGroups<F>(src.dptr<T>(), groups, ret->dptr<T>(), req);
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
