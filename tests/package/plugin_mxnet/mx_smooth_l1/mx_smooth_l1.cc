// SPDX-License-Identifier: Apache-2.0
// MXNet's example of a SimpleOp: the smooth L1 loss of one array.
#include "mxtrain/operator/mxnet_operator.h"

namespace mxtrain::mxnet {

#define XPU cpu

namespace mshadow_op {
struct smooth_l1_loss {
  // a is x, b is sigma2
  static real_t Map(real_t a, real_t b) {
    if (a > 1.0f / b) {
      return a - 0.5f / b;
    } else if (a < -1.0f / b) {
      return -a - 0.5f / b;
    } else {
      return 0.5f * a * a * b;
    }
  }
};
struct smooth_l1_gradient {
  static real_t Map(real_t a, real_t b) {
    if (a > 1.0f / b) {
      return 1.0f;
    } else if (a < -1.0f / b) {
      return -1.0f;
    } else {
      return b * a;
    }
  }
};
}  // namespace mshadow_op

inline TShape SmoothL1Shape_(const TShape& src, const EnvArguments&) {
  return TShape(src);
}

template <typename xpu>
void SmoothL1Forward_(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req,
                      RunContext) {
  const real_t sigma2 = static_cast<real_t>(env.scalar * env.scalar);
  MXTRAIN_REAL_TYPE_SWITCH(ret->type, Real, {
    const Real* in = src.dptr<Real>();
    Assign(FlatTo1D<Real>(*ret), req, [=](int64_t i) {
      return mshadow_op::smooth_l1_loss::Map(static_cast<real_t>(in[i]), sigma2);
    });
  });
}

template <typename xpu>
void SmoothL1BackwardUseIn_(const OutputGrad& out_grad, const Input0& in_data0,
                            const EnvArguments& env, TBlob* in_grad, OpReqType req, RunContext) {
  const real_t sigma2 = static_cast<real_t>(env.scalar * env.scalar);
  MXTRAIN_REAL_TYPE_SWITCH(in_grad->type, Real, {
    const Real* src = in_data0.data.dptr<Real>();
    const Real* ograd = out_grad.data.dptr<Real>();
    Assign(FlatTo1D<Real>(*in_grad), req, [=](int64_t i) {
      return static_cast<real_t>(ograd[i]) *
             mshadow_op::smooth_l1_gradient::Map(static_cast<real_t>(src[i]), sigma2);
    });
  });
}

}  // namespace mxtrain::mxnet

MXTRAIN_OPERATOR(mx_smooth_l1, registry) {
  using namespace mxtrain::mxnet;
  MXTRAIN_REGISTER_SIMPLE_OP(mx_smooth_l1, XPU)
      .set_shape_function(SmoothL1Shape_)
      .set_function(XPU::kDevMask, SmoothL1Forward_<XPU>, mxtrain::kNoInplace)
      .set_gradient(XPU::kDevMask, SmoothL1BackwardUseIn_<XPU>, mxtrain::kInplaceOutIn)
      .set_enable_scalar(true)
      .describe("Calculate Smooth L1 Loss(lhs, scalar)");
}
