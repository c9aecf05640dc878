// SPDX-License-Identifier: Apache-2.0
#include "./smooth_l1_unary-inl.h"
#include "mxtrain/operator/mxnet_names.cuh"

MXTRAIN_OPERATOR(mx_guide_smooth_l1_cuda, registry) {
  using namespace mxtrain::mxnet;
  using namespace mxtrain::mxnet::op;
  MXNET_REGISTER_SIMPLE_OP(mx_guide_smooth_l1, XPU)
      .set_shape_function(SmoothL1Shape_)
      .set_function(XPU::kDevMask, SmoothL1Forward_<XPU>, kNoInplace)
      .set_gradient(XPU::kDevMask, SmoothL1BackwardUseIn_<XPU>, kInplaceOutIn)
      .set_enable_scalar(true)
      .describe("Calculate Smooth L1 Loss(lhs, scalar)");
}
