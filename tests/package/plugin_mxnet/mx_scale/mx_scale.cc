// SPDX-License-Identifier: Apache-2.0
#include "./mx_scale-inl.h"

MXTRAIN_OPERATOR(mx_scale, registry) {
  using namespace mxtrain::mxnet;
  MXNET_REGISTER_OP_PROPERTY(mx_scale, op::MxScaleProp<XPU>)
      .describe("scale times the data")
      .add_arguments(op::MxScaleParam::Describe());
}
