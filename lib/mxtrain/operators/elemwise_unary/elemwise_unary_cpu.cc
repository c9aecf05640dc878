#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_unary/elemwise_unary.h"

namespace mxtrain::elemwise_unary {
namespace {

// f(TypeTag<T>{}) for a type that F takes.
template <typename F, typename Body>
void SwitchTypesOf(DType type, Body&& body) {
  if constexpr (F::kIntegers) {
    SwitchType(type, F::kName, body);
  } else {
    SwitchFloating(type, F::kName, body);
  }
}

template <typename F>
void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext) {
  SwitchTypesOf<F>(ret->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapElements<T>(
        *ret, req, [](ComputeOf<T> x) { return F::Value(x); }, src);
  });
}

// in_grad = head * Slope(v).
template <typename F>
void Multiply(const TBlob& head, const TBlob& v, TBlob* in_grad, OpReqType req) {
  SwitchTypesOf<F>(in_grad->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapElements<T>(
        *in_grad, req, [](ComputeOf<T> g, ComputeOf<T> x) { return g * F::Slope(x); }, head, v);
  });
}
template <typename F>
void GradientOfInput(const OutputGrad& head, const Input0& in, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext) {
  Multiply<F>(head.data, in.data, in_grad, req);
}
template <typename F>
void GradientOfOutput(const OutputGrad& head, const OutputValue& out, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext) {
  Multiply<F>(head.data, out.data, in_grad, req);
}
// Slope reads nothing; a slope of zero gives zero whatever the head gradient is. The zero that is added keeps padding from becoming -0.
template <typename F>
void ConstantGradient(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req, RunContext) {
  SwitchTypesOf<F>(in_grad->type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(
        *in_grad, req, [](C g) { return F::Slope(C(0)) == C(0) ? C(0) : g * F::Slope(C(0)) + C(0); }, head.data);
  });
}

template <typename F>
void Register(OperatorRegistry& registry) {
  SimpleOp op(registry, F::kName);
  op.set_function(DeviceType::kCPU, Forward<F>, kInplaceInOut).set_elementwise(F::kElementwise);
  if (!F::kIntegers) op.set_types(kFloatingTypes);
  if constexpr (F::kSlopeOf == SlopeOf::kInput) {
    op.set_gradient(DeviceType::kCPU, GradientOfInput<F>, kInplaceOutIn);
  } else if constexpr (F::kSlopeOf == SlopeOf::kOutput) {
    op.set_gradient(DeviceType::kCPU, GradientOfOutput<F>, kInplaceOutIn);
  } else {
    op.set_gradient(DeviceType::kCPU, ConstantGradient<F>, kInplaceOutIn);
  }
}

}  // namespace

MXTRAIN_OPERATOR(elemwise_unary_cpu, registry) {
  ForEachUnary([&registry](auto f) { Register<decltype(f)>(registry); });
}

}  // namespace mxtrain::elemwise_unary
