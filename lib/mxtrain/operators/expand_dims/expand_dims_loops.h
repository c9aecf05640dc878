// SPDX-License-Identifier: Apache-2.0
#pragma once
// expand_dims and squeeze copy bytes, if anything. Written once for both devices: Device is OnCpu
// or OnGpu.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/expand_dims/expand_dims.h"

namespace mxtrain::expand_dims {

template <typename Device>
void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  CopyBlob(Device{ctx}, req, src, *ret);
}
template <typename Device>
void Backward(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  CopyBlob(Device{ctx}, req, head.data, *in_grad);
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  for (const char* name : {"expand_dims", "squeeze"}) {
    SimpleOp(registry, name)
        .set_function(Device::kType, Forward<Device>, kInplaceInOut)
        .set_gradient(Device::kType, Backward<Device>, kInplaceOutIn);
  }
}

}  // namespace mxtrain::expand_dims
