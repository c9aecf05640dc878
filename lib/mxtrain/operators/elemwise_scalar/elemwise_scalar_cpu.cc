#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::elemwise_scalar {
namespace {

using elemwise_binary::Slopes;

// f(x, scalar).
template <typename F>
struct Direct {
  static constexpr bool kProduct = std::is_same_v<F, elemwise_binary::Multiply> || std::is_same_v<F, elemwise_binary::DivideOp>;
  static constexpr bool kSlopeReadsInput = F::kSlopes == Slopes::kInputs && !kProduct;
  static constexpr const char* kName = F::kScalarName;
  // Zero stays zero whatever the number is.
  static constexpr Elementwise kElementwise = std::is_same_v<F, elemwise_binary::Multiply> ? Elementwise::kZeroToZero : Elementwise::kYes;
  template <typename T>
  static T Value(T x, T s) {
    return F::Value(x, s) + T(0);  // keeps padding from becoming -0
  }
  template <typename T>
  static T Slope(T x, T s) {
    return F::Left(x, s);
  }
};
// f(scalar, x).
template <typename F>
struct Reversed {
  static constexpr bool kSlopeReadsInput = F::kSlopes == Slopes::kInputs;
  static constexpr const char* kName = F::kReversedName;
  static constexpr Elementwise kElementwise = Elementwise::kYes;
  template <typename T>
  static T Value(T x, T s) {
    return F::Value(s, x);
  }
  template <typename T>
  static T Slope(T x, T s) {
    return F::Right(s, x);
  }
};

template <typename F>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  SwitchType(ret->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(
        *ret, req, [s = static_cast<C>(env.scalar)](C x) { return F::Value(x, s); }, src);
  });
}

template <typename F>
void Gradient(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  SwitchType(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(
        *in_grad, req, [s = static_cast<C>(env.scalar)](C g, C x) { return g * F::Slope(x, s); }, head.data, in.data);
  });
}

template <typename F>
void GradientWithoutInput(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  SwitchType(in_grad->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const C slope = F::Slope(C(0), static_cast<C>(env.scalar));
    MapElements<T>(
        *in_grad, req, [slope](C g) { return slope == C(0) ? C(0) : g * slope + C(0); }, head.data);
  });
}

template <typename F>
void Register(OperatorRegistry& registry) {
  SimpleOp op(registry, std::string(F::kName) + "_scalar");
  op.set_function(DeviceType::kCPU, Forward<F>, kInplaceInOut).set_elementwise(F::kElementwise);
  if constexpr (!F::kSlopeReadsInput) {
    op.set_gradient(DeviceType::kCPU, GradientWithoutInput<F>, kInplaceOutIn);
  } else {
    op.set_gradient(DeviceType::kCPU, Gradient<F>, kInplaceOutIn);
  }
}

}  // namespace

MXTRAIN_OPERATOR(elemwise_scalar_cpu, registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    Register<Direct<F>>(registry);
    if constexpr (*F::kReversedName != 0) Register<Reversed<F>>(registry);
  });
}

}  // namespace mxtrain::elemwise_scalar
