// clip(x) = min(max(x, a_min), a_max); the gradient passes where a_min <= x <= a_max.
#include "mxtrain/operator/elementwise.h"
#include "mxtrain/operator/simple_op.h"

namespace mxtrain::clip {
namespace {

struct ClipParam : Parameter<ClipParam> {
  double a_min = 0, a_max = 0;
  static void Declare(Fields<ClipParam>& f) {
    f.Add("a_min", &ClipParam::a_min).Required().Help("lower bound");
    f.Add("a_max", &ClipParam::a_max).Required().Help("upper bound");
  }
};

void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext) {
  const auto& p = env.As<ClipParam>();
  SwitchType(ret->type, "clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const C low = static_cast<C>(p.a_min), high = static_cast<C>(p.a_max);
    MapElements<T>(
        *ret, req, [low, high](C x) { return x < low    ? low
                                             : x > high ? high
                                                        : x; }, src);
  });
}

void Backward(const OutputGrad& head, const Input0& in, const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  const auto& p = env.As<ClipParam>();
  SwitchType(in_grad->type, "clip", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const C low = static_cast<C>(p.a_min), high = static_cast<C>(p.a_max);
    MapElements<T>(
        *in_grad, req, [low, high](C g, C x) { return x < low || x > high ? C(0) : g; }, head.data, in.data);
  });
}

}  // namespace

MXTRAIN_OPERATOR(clip_cpu, registry) {
  SimpleOp(registry, "clip")
      .set_function(DeviceType::kCPU, Forward, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn)
      .set_kwargs_struct<ClipParam>()
      .set_elementwise(Elementwise::kYes)
      .describe("every element, but no less than a_min and no more than a_max");
}

}  // namespace mxtrain::clip
