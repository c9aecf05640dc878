// SPDX-License-Identifier: Apache-2.0
#pragma once
// slice_axis and reverse as copies between views, written once for both devices: Device is OnCpu or
// OnGpu.
#include "mxtrain/operators/slice/slice.h"

namespace mxtrain::slice {

template <typename Device, typename Param>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  CopyFromView(Device{ctx}, req, src, ViewOf(env.As<Param>(), src.shape), *ret);
}
template <typename Device, typename Param>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  ScatterView(Device{ctx}, req, head.data, ViewOf(env.As<Param>(), in_grad->shape), *in_grad);
}

template <typename Device, typename Param>
void AddKernel(OperatorRegistry& registry, const char* name) {
  SimpleOp(registry, name)
      .set_function(Device::kType, Forward<Device, Param>, kNoInplace)
      .set_gradient(Device::kType, Backward<Device, Param>, kNoInplace);
}
template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  AddKernel<Device, SliceAxisParam>(registry, "slice_axis");
  AddKernel<Device, ReverseParam>(registry, "reverse");
}

}  // namespace mxtrain::slice
