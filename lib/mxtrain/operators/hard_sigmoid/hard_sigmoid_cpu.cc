// hard_sigmoid(x) = min(max(alpha x + beta, 0), 1).
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::hard_sigmoid {
namespace {

struct HardSigmoidParam : Parameter<HardSigmoidParam> {
  double alpha = 0.2, beta = 0.5;
  static void Declare(Fields<HardSigmoidParam>& f) {
    f.Add("alpha", &HardSigmoidParam::alpha).Default(0.2).Help("slope");
    f.Add("beta", &HardSigmoidParam::beta).Default(0.5).Help("value at 0");
  }
};

void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const auto& p = env.As<HardSigmoidParam>();
  SwitchFloating(ret->type, "hard_sigmoid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const C alpha = static_cast<C>(p.alpha), beta = static_cast<C>(p.beta);
    const auto value = [alpha, beta](C x) {
      const C y = alpha * x + beta;
      return y < C(0) ? C(0) : y > C(1) ? C(1) : y;
    };
    MapElements<T>(*ret, req, value, src);
  });
}

// Zero where the output is 0 or 1.
void Backward(const OutputGrad& head, const OutputValue& out, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  SwitchFloating(in_grad->type, "hard_sigmoid", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const C alpha = static_cast<C>(env.As<HardSigmoidParam>().alpha);
    MapElements<T>(
        *in_grad, req, [alpha](C g, C y) { return y > C(0) && y < C(1) ? g * alpha : C(0); }, head.data, out.data);
  });
}

}  // namespace

MXTRAIN_OPERATOR(hard_sigmoid_cpu, registry) {
  SimpleOp(registry, "hard_sigmoid")
      .set_function(DeviceType::kCPU, Forward, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn)
      .set_kwargs_struct<HardSigmoidParam>()
      .set_types(kFloatingTypes)
      .set_elementwise(Elementwise::kYes)
      .describe("alpha x + beta, kept between 0 and 1");
}

}  // namespace mxtrain::hard_sigmoid
