// SPDX-License-Identifier: Apache-2.0
#pragma once
// The loops of broadcasting and of its gradient, written once for both devices: Device is OnCpu or
// OnGpu.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/strided_view.h"
#include "mxtrain/operators/broadcast_to/broadcast_to.h"
#include "mxtrain/operators/reduce/reduce_loops.h"

namespace mxtrain::broadcast_to {

template <typename Device>
void Spread(const Device& device, const TBlob& src, const TBlob& out, OpReqType req) {
  const StridedView whole = StridedView::Whole(src.shape);
  StridedView view;
  for (int i = 0; i < whole.ndim; ++i)
    view.Add(out.shape[i], src.shape[i] == out.shape[i] ? whole.stride[i] : 0);
  CopyFromView(device, req, src, view, out);
}

template <typename Device>
void SumBack(const Device& device, const TBlob& head, const TBlob& grad, OpReqType req) {
  if (head.shape == grad.shape) return CopyBlob(device, req, head, grad);
  reduce::Groups groups;
  for (int i = 0; i < head.shape.ndim(); ++i) {
    reduce::Groups::Space& space = grad.shape[i] != head.shape[i] ? groups.reduced : groups.kept;
    space.Add(head.shape[i], head.shape.Product(i + 1, head.shape.ndim()));
  }
  SwitchFloating(head.type, "broadcast_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    const T* g = head.dptr<T>();
    reduce::ReduceGroups<reduce::Sum>(device, g, groups, grad.dptr<T>(), req);
  });
}

template <typename Device>
void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  Spread(Device{ctx}, src, *ret, req);
}
template <typename Device>
void Backward(const OutputGrad& head, const EnvArguments&, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  SumBack(Device{ctx}, head.data, *in_grad, req);
}

template <typename Device>
void ForwardLike(const TBlob& lhs, const TBlob&, const EnvArguments&, TBlob* ret, OpReqType req,
                 RunContext ctx) {
  Spread(Device{ctx}, lhs, *ret, req);
}
template <typename Device>
void BackwardLike(const OutputGrad& head, const EnvArguments&, TBlob* lhs_grad, TBlob* rhs_grad,
                  OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  SumBack(Device{ctx}, head.data, *lhs_grad, req_lhs);
  ZeroBlob(Device{ctx}, req_rhs, *rhs_grad);
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  for (const char* name : {"broadcast_axis", "broadcast_to"}) {
    SimpleOp(registry, name)
        .set_function(Device::kType, Forward<Device>, kNoInplace)
        .set_gradient(Device::kType, Backward<Device>, kNoInplace);
  }
  SimpleOp(registry, "broadcast_like")
      .set_function(Device::kType, ForwardLike<Device>, kNoInplace)
      .set_gradient(Device::kType, BackwardLike<Device>, kNoInplace);
}

}  // namespace mxtrain::broadcast_to
