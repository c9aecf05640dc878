// SPDX-License-Identifier: Apache-2.0
#pragma once
// Dropout, written once for both devices: Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/broadcast_index.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operators/dropout/dropout.h"

namespace mxtrain::dropout {

// Of element i of the mask.
template <typename T>
struct Factor {
  float keep;  // probability of keeping an element
  bool drops;
  RandomDraws random;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    using A = AccumulatorOf<T>;
    if (!drops) return A(1);
    return random.Uniform(static_cast<uint64_t>(i)) < keep ? static_cast<A>(T(A(1) / A(keep)))
                                                           : A(0);
  }
};
template <typename T>
struct Dropped {
  const T* x;
  Factor<T> factor;
  BroadcastIndex index;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return AccumulatorOf<T>(x[i]) * factor(index(i));
  }
};
template <typename T>
struct Gradient {
  const T *head, *mask;
  BroadcastIndex index;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return AccumulatorOf<T>(head[i]) * AccumulatorOf<T>(mask[index(i)]);
  }
};

template <typename Device>
class Dropout final : public Operator {
 public:
  Dropout(float p, bool drops, BroadcastIndex index) : keep_(1 - p), drops_(drops), index_(index) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req,
               std::span<const TBlob> out, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    SwitchFloating(in[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Factor<T> factor{keep_, drops_, ctx.requested[0].Draws()};
      // Without a requested mask the factors are drawn again where needed: a draw is a pure
      // function of its index.
      MapOn<T>(device, out[1], req[1], factor);
      if (!drops_) return CopyBlob(device, req[0], in[0], out[0]);
      MapOn<T>(device, out[0], req[0], Dropped<T>{in[0].dptr<T>(), factor, index_});
    });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob>,
                std::span<const TBlob> out, std::span<const OpReqType> req,
                std::span<const TBlob> in_grad, std::span<const TBlob>) override {
    const Device device{ctx.run_ctx};
    if (!drops_) return CopyBlob(device, req[0], out_grad[0], in_grad[0]);
    SwitchFloating(in_grad[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      MapOn<T>(device, in_grad[0], req[0],
               Gradient<T>{out_grad[0].dptr<T>(), out[1].dptr<T>(), index_});
    });
  }

 private:
  float keep_;
  bool drops_;
  BroadcastIndex index_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const DropoutProperty&>(base);
  const bool drops = property.Drops(request.is_train);
  // Draws depend on an element's offset in the plain array; without draws this is a copy, for any
  // layout.
  Plan plan = drops ? PlainPlan(base, request) : FlatPlan(base, request, true);
  plan.out[1] = Layout();
  if (!drops) plan.backward_reads = BackwardReads{{true, false}, {false}, {false, false}};
  plan.make = [p = property.param().p, drops,
               index = BroadcastIndex(request.in[0].shape, request.out[1].shape)] {
    return std::make_unique<Dropout<Device>>(p, drops, index);
  };
  return plan;
}

}  // namespace mxtrain::dropout
