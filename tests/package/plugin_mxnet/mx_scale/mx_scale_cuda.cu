// SPDX-License-Identifier: Apache-2.0
#include "./mx_scale-inl.h"
#include "mxtrain/operator/mxnet_names.cuh"

MXTRAIN_OPERATOR(mx_scale_cuda, registry) {
  using namespace mxtrain::mxnet;
  MXNET_REGISTER_OP_PROPERTY(mx_scale, op::MxScaleProp<XPU>);
}
