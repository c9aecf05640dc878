// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of broadcasting binary functions. Images in blocks of channels, and channels last,
// are plain arrays with one axis more.
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/constant_slope.h"
#include "mxtrain/operator/reduction.h"
#include "mxtrain/operators/elemwise_binary/elemwise_binary.h"

namespace mxtrain::broadcast_binary {

template <typename F>
struct Value {
  template <typename C>
  MXTRAIN_HD C operator()(C a, C b) const {
    return F::Value(a, b);
  }
};
// A slope of zero gives zero for any head gradient.
template <typename F, bool kLeft>
struct HeadTimesSlope {
  template <typename C>
  MXTRAIN_HD C operator()(C head, C a, C b) const {
    const C slope = kLeft ? F::Left(a, b) : F::Right(a, b);
    return slope == C(0) ? C(0) : head * slope;
  }
};
// The same for a product, whose slope is the other factor.
struct HeadTimesFactor {
  template <typename C>
  MXTRAIN_HD C operator()(C head, C other) const {
    return other == C(0) ? C(0) : head * other;
  }
};

// The plain array with the elements of images whose channels lie in blocks (ChannelBlock):
// [N, C / block, H, W, block], with padding; [N, 1, H, W, 1] for an operand of one channel.
inline TShape InBlocks(const TShape& shape, int64_t block) {
  if (block == 1) return shape;
  const bool one = shape[1] == 1;
  return {shape[0], one ? 1 : CeilDivide(shape[1], block), shape[2], shape[3], one ? 1 : block};
}
// Views of the arrays of an operator with this output.
class View {
 public:
  explicit View(const TBlob& out) : block_(ChannelBlock(out.shape, out.layout)) {}
  TBlob operator()(TBlob blob) const {
    blob.shape = InBlocks(blob.shape, block_);
    blob.layout = {};
    return blob;
  }

 private:
  int64_t block_;
};

template <typename Device, typename F>
void Forward(const TBlob& lhs, const TBlob& rhs, const EnvArguments&, TBlob* ret, OpReqType req,
             RunContext ctx) {
  SwitchFloating(ret->type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const View view(*ret);
    MapBroadcast<T>(Device{ctx}, view(*ret), req, Value<F>{}, Broadcast<T>(view(lhs)),
                    Broadcast<T>(view(rhs)));
  });
}

template <typename Device, typename F>
void GradientOfInputs(const OutputGrad& head, const Input0& lhs, const Input1& rhs,
                      const EnvArguments& env, TBlob* lhs_grad, TBlob* rhs_grad, OpReqType req_lhs,
                      OpReqType req_rhs, RunContext ctx) {
  double* scratch = static_cast<double*>(env.resource[0].space);
  const View view(head.data);
  const TBlob to_lhs = view(*lhs_grad), to_rhs = view(*rhs_grad);
  SwitchFloating(head.data.type, F::kBroadcastName, [&](auto tag) {
    using T = typename decltype(tag)::type;
    const Broadcast<T> g(view(head.data)), a(view(lhs.data)), b(view(rhs.data));
    if constexpr (std::is_same_v<F, elemwise_binary::Multiply>) {
      SumBroadcast<T>(Device{ctx}, g.shape, to_rhs, req_rhs, scratch, HeadTimesFactor{}, g, a);
      SumBroadcast<T>(Device{ctx}, g.shape, to_lhs, req_lhs, scratch, HeadTimesFactor{}, g, b);
    } else {
      SumBroadcast<T>(Device{ctx}, g.shape, to_rhs, req_rhs, scratch, HeadTimesSlope<F, false>{}, g,
                      a, b);
      SumBroadcast<T>(Device{ctx}, g.shape, to_lhs, req_lhs, scratch, HeadTimesSlope<F, true>{}, g,
                      a, b);
    }
  });
}
// One for all functions whose slopes read nothing.
template <typename Device>
void TimesConstants(double left, double right, const TBlob& head, const TBlob& lhs_grad,
                    const TBlob& rhs_grad, OpReqType req_lhs, OpReqType req_rhs, double* scratch,
                    RunContext ctx) {
  SwitchFloating(head.type, "constant slopes", [&](auto tag) {
    using T = typename decltype(tag)::type;
    using C = ComputeOf<T>;
    const HeadTimesConstant<C> by_left{static_cast<C>(left)}, by_right{static_cast<C>(right)};
    SumLinear<T>(Device{ctx}, head, rhs_grad, req_rhs, scratch, by_right);
    SumLinear<T>(Device{ctx}, head, lhs_grad, req_lhs, scratch, by_left);
  });
}
template <typename Device, typename F>
void GradientOfHead(const OutputGrad& head, const EnvArguments& env, TBlob* lhs_grad,
                    TBlob* rhs_grad, OpReqType req_lhs, OpReqType req_rhs, RunContext ctx) {
  const View view(head.data);
  TimesConstants<Device>(F::Left(0.0, 0.0), F::Right(0.0, 0.0), view(head.data), view(*lhs_grad),
                         view(*rhs_grad), req_lhs, req_rhs,
                         static_cast<double*>(env.resource[0].space), ctx);
}

template <typename Device>
void AddKernels(OperatorRegistry& registry) {
  elemwise_binary::ForEachBinary([&registry](auto f) {
    using F = decltype(f);
    SimpleOp op(registry, F::kBroadcastName);
    op.set_function(Device::kType, Forward<Device, F>, kInplaceLhsOut);
    if constexpr (F::kSlopes == elemwise_binary::Slopes::kInputs) {
      op.set_gradient(Device::kType, GradientOfInputs<Device, F>, kNoInplace);
    } else {
      op.set_gradient(Device::kType, GradientOfHead<Device, F>, kNoInplace);
    }
  });
}

}  // namespace mxtrain::broadcast_binary

MXTRAIN_KERNELS(broadcast_binary, Device, registry) {
  mxtrain::broadcast_binary::AddKernels<Device>(registry);
}
