// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of Dropout. A draw is a pure function of its index, so the gradient draws again
// instead of reading the mask.
#include <algorithm>
#include <memory>

#include "mxtrain/operator/broadcast_index.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/uniform_block.h"
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
    return random.Uniform(static_cast<uint64_t>(i)) < keep ? Kept() : A(0);
  }
  MXTRAIN_HD AccumulatorOf<T> Kept() const {
    using A = AccumulatorOf<T>;
    return static_cast<A>(T(A(1) / A(keep)));
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

// out = x times its factors, honouring the request.
template <typename T, typename Device>
void Drop(const Device& device, const TBlob& x, const Factor<T>& factor,
          const BroadcastIndex& index, OpReqType req, const TBlob& out) {
  MapOn<T>(device, out, req, Dropped<T>{x.dptr<T>(), factor, index});
}

namespace detail {

template <bool kAdd, typename T>
MXTRAIN_SIMD void DropBlock(const T* x, const float* draws, float keep, AccumulatorOf<T> kept,
                            int64_t n, T* y) {
  using A = AccumulatorOf<T>;
  for (int64_t k = 0; k < n; ++k) {
    const A value = A(x[k]) * (draws[k] < keep ? kept : A(0));
    y[k] = static_cast<T>(kAdd ? A(y[k]) + value : value);
  }
}

}  // namespace detail

// Where every element has a draw of its own: block by block.
template <typename T>
void Drop(const OnCpu& device, const TBlob& x, const Factor<T>& factor, const BroadcastIndex& index,
          OpReqType req, const TBlob& out) {
  if (!index.same()) return MapOn<T>(device, out, req, Dropped<T>{x.dptr<T>(), factor, index});
  const int64_t size = out.StoredSize();
  SwitchReq(req, [&](auto accumulate) {
    ParallelFor((size + kUniformBlock - 1) / kUniformBlock, kParallelGrain / kUniformBlock,
                [&](int64_t begin, int64_t end) {
                  float draws[kUniformBlock];
                  for (int64_t at = begin * kUniformBlock; at < std::min(end * kUniformBlock, size);
                       at += kUniformBlock) {
                    FillUniform(factor.random, static_cast<uint64_t>(at), draws);
                    detail::DropBlock<accumulate()>(
                        x.dptr<T>() + at, draws, factor.keep, factor.Kept(),
                        std::min(kUniformBlock, size - at), out.dptr<T>() + at);
                  }
                });
  });
}

template <typename Device>
class Dropout final : public Operator {
 public:
  Dropout(float p, bool drops, BroadcastIndex index) : keep_(1 - p), drops_(drops), index_(index) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Factor<T> factor{keep_, drops_, args.ctx.requested[0].Draws()};
      MapOn<T>(device, args.out_data[1], args.req[1], factor);
      if (!drops_) return CopyBlob(device, args.req[0], args.in_data[0], args.out_data[0]);
      Drop(device, args.in_data[0], factor, index_, args.req[0], args.out_data[0]);
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    if (!drops_) return CopyBlob(device, args.req[0], args.out_grad[0], args.in_grad[0]);
    SwitchFloating(args.in_grad[0].type, "Dropout", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Factor<T> factor{keep_, drops_, args.ctx.requested[0].Draws()};
      Drop(device, args.out_grad[0], factor, index_, args.req[0], args.in_grad[0]);
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
  plan.make = [p = property.param().p, drops,
               index = BroadcastIndex(request.in[0].shape, request.out[1].shape)] {
    return std::make_unique<Dropout<Device>>(p, drops, index);
  };
  return plan;
}

}  // namespace mxtrain::dropout

MXTRAIN_KERNELS(dropout, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("Dropout", dropout::MakePlan<Device>));
}
