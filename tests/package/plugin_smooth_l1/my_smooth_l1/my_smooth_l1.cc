// SPDX-License-Identifier: Apache-2.0
// smooth_l1 as an out-of-tree plug-in: the functions, and one entry that makes an NDArray function
// and a Symbol operator of them.
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/simple_op.h"

namespace {

using namespace mxtrain;

void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  const float s2 = static_cast<float>(env.scalar * env.scalar);
  const float* x = src.dptr<float>();
  Map<float>(ctx, *ret, req, [=](int64_t i) {
    if (x[i] > 1 / s2) return x[i] - 0.5f / s2;
    if (x[i] < -1 / s2) return -x[i] - 0.5f / s2;
    return 0.5f * s2 * x[i] * x[i];
  });
}

void Backward(const OutputGrad& out_grad, const Input0& in, const EnvArguments& env, TBlob* in_grad,
              OpReqType req, RunContext ctx) {
  const float s2 = static_cast<float>(env.scalar * env.scalar);
  const float *x = in.data.dptr<float>(), *g = out_grad.data.dptr<float>();
  Map<float>(ctx, *in_grad, req, [=](int64_t i) {
    return g[i] * (x[i] > 1 / s2 ? 1 : x[i] < -1 / s2 ? -1 : s2 * x[i]);
  });
}

}  // namespace

MXTRAIN_OPERATOR(my_smooth_l1, registry) {
  SimpleOp(registry, "my_smooth_l1")
      .set_function(DeviceType::kCPU, Forward, kInplaceInOut)
      .set_gradient(DeviceType::kCPU, Backward, kInplaceOutIn)
      .set_enable_scalar(true)
      .set_types({DType::kFloat32})
      .set_elementwise(Elementwise::kZeroToZero)
      .describe("0.5 (scalar x)^2 near zero, |x| - 0.5 / scalar^2 elsewhere");
}
