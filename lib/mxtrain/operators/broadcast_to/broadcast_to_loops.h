// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of broadcasting and of its gradient.
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/reduction.h"
#include "mxtrain/operators/broadcast_to/broadcast_to.h"

namespace mxtrain::broadcast_to {

template <typename Device>
void Spread(const Device& device, const TBlob& src, const TBlob& out, OpReqType req) {
  SwitchFloating(out.type, "broadcast_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    MapBroadcast<T>(device, out, req, SameValue{}, Broadcast<T>(src));
  });
}

template <typename Device>
void SumBack(const Device& device, const TBlob& head, const TBlob& grad, OpReqType req,
             const EnvArguments& env) {
  SwitchFloating(head.type, "broadcast_to", [&](auto tag) {
    using T = typename decltype(tag)::type;
    SumLinear<T>(device, head, grad, req, static_cast<double*>(env.resource[0].space), SameValue{});
  });
}

template <typename Device>
void Forward(const TBlob& src, const EnvArguments&, TBlob* ret, OpReqType req, RunContext ctx) {
  Spread(Device{ctx}, src, *ret, req);
}
template <typename Device>
void Backward(const OutputGrad& head, const EnvArguments& env, TBlob* in_grad, OpReqType req,
              RunContext ctx) {
  SumBack(Device{ctx}, head.data, *in_grad, req, env);
}

template <typename Device>
void ForwardLike(const TBlob& lhs, const TBlob&, const EnvArguments&, TBlob* ret, OpReqType req,
                 RunContext ctx) {
  Spread(Device{ctx}, lhs, *ret, req);
}
template <typename Device>
void BackwardLike(const OutputGrad& head, const EnvArguments& env, TBlob* lhs_grad, TBlob* rhs_grad,
                  OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  SumBack(Device{ctx}, head.data, *lhs_grad, req_lhs, env);
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

MXTRAIN_KERNELS(broadcast_to, Device, registry) {
  mxtrain::broadcast_to::AddKernels<Device>(registry);
}
