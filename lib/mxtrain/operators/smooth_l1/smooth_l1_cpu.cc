#include "mxtrain/operators/smooth_l1/smooth_l1.h"

#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::smooth_l1 {
namespace {

void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  SwitchFloating(ret->type, "smooth_l1", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(*ret, req, Value<C>{static_cast<C>(env.scalar * env.scalar)}, src);
  });
}

void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  SwitchFloating(in_grad->type, "smooth_l1", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    MapElements<T>(*in_grad, req, Gradient<C>{static_cast<C>(env.scalar * env.scalar)}, head.data, in.data);
  });
}

}  // namespace

MXTRAIN_OPERATOR(smooth_l1_cpu, registry) {
  SimpleOp(registry, "smooth_l1")
      .set_function(DeviceType::kCPU, Forward, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn)
      .set_enable_scalar(true)
      .set_types(kFloatingTypes)
      .set_elementwise(Elementwise::kZeroToZero)
      .describe("0.5 (scalar x)^2 near zero, |x| - 0.5 / scalar^2 elsewhere");
}

}  // namespace mxtrain::smooth_l1
