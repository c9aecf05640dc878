#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

#include "mxtrain/operator/elementwise.h"

namespace mxtrain::elemwise_binary {
namespace {

template <typename F>
void Forward(const TBlob& lhs, const TBlob& rhs, const EnvArguments&, TBlob* ret, OpReqType req, RunContext) {
  SwitchType(ret->type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapElements<T>(
        *ret, req, [](ComputeOf<T> a, ComputeOf<T> b) { return F::Value(a, b); }, lhs, rhs);
  });
}

// The left gradient may be the head gradient's memory, so the right one comes first.
template <typename F>
void Gradient(const OutputGrad& head, const Input0& lhs, const Input1& rhs, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad,
              OpReqType req_lhs, OpReqType req_rhs, RunContext) {
  SwitchType(head.data.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(
        *rhs_grad, req_rhs, [](C g, C a, C b) { return g * F::Right(a, b); }, head.data, lhs.data, rhs.data);
    MapElements<T>(
        *lhs_grad, req_lhs, [](C g, C a, C b) { return g * F::Left(a, b); }, head.data, lhs.data, rhs.data);
  });
}

// A slope of 1 passes every bit on, as the identity options of addition promise. After a slope of -1 a zero is added, which keeps padding
// from becoming -0.
template <typename F>
void ConstantGradient(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs,
                      RunContext) {
  SwitchType(head.data.type, F::kName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    static constexpr C kLeft = F::Left(C(0), C(0)), kRight = F::Right(C(0), C(0));
    MapElements<T>(
        *rhs_grad, req_rhs, [](C g) { return kRight == C(0)  ? C(0)
                                             : kRight < C(0) ? g * kRight + C(0)
                                                             : g * kRight; }, head.data);
    MapElements<T>(
        *lhs_grad, req_lhs, [](C g) { return kLeft == C(0) ? C(0) : g * kLeft; }, head.data);
  });
}

template <typename F>
void Register(OperatorRegistry& registry, const char* name) {
  SimpleOp op(registry, name);
  op.set_function(DeviceType::kCPU, Forward<F>, kInplaceLhsOut).set_elementwise(F::kElementwise);
  if constexpr (F::kSlopes == Slopes::kInputs) {
    op.set_gradient(DeviceType::kCPU, Gradient<F>, kInplaceOutLhs);
  } else {
    op.set_gradient(DeviceType::kCPU, ConstantGradient<F>, kInplaceOutLhs);
  }
}

}  // namespace

MXTRAIN_OPERATOR(elemwise_binary_cpu, registry) {
  ForEachBinary([&registry](auto f) { Register<decltype(f)>(registry, decltype(f)::kName); });
  Register<Add>(registry, "_grad_add");
}

}  // namespace mxtrain::elemwise_binary
