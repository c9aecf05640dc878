// SPDX-License-Identifier: Apache-2.0
#pragma once
// transpose and SwapAxis as copies between views, written once for both devices: Device is OnCpu or
// OnGpu.
#include "mxtrain/operator/strided_view.h"
#include "mxtrain/operators/transpose/transpose.h"

namespace mxtrain::transpose {

// The data in the order of the output.
template <typename Param>
StridedView ViewOf(const TShape& data, const EnvArguments& env) {
  const Order order = OrderOf(env.As<Param>(), data);
  const StridedView whole = StridedView::Whole(data);
  StridedView view;
  for (int i = 0; i < data.ndim(); ++i)
    view.Add(whole.dim[order.axis[i]], whole.stride[order.axis[i]]);
  return view;
}

template <typename Device, typename Param>
void Forward(const TBlob& src, const EnvArguments& env, TBlob* ret, OpReqType req, RunContext ctx) {
  CopyFromView(Device{ctx}, req, src, ViewOf<Param>(src.shape, env), *ret);
}
template <typename Device, typename Param>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  CopyToView(Device{ctx}, req, head.data, ViewOf<Param>(in_grad->shape, env), *in_grad);
}

template <typename Device, typename Param>
void AddKernel(OperatorRegistry& registry, const char* name) {
  SimpleOp(registry, name)
      .set_function(Device::kType, Forward<Device, Param>, kNoInplace)
      .set_gradient(Device::kType, Backward<Device, Param>, kNoInplace);
}
template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  AddKernel<Device, TransposeParam>(registry, "transpose");
  AddKernel<Device, SwapAxisParam>(registry, "SwapAxis");
}

}  // namespace mxtrain::transpose
