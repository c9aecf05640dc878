// SPDX-License-Identifier: Apache-2.0
#pragma once
// The kernels of Dropout. A draw is a pure function of its index, so the gradient draws again
// instead of reading the mask.
#include <algorithm>
#include <memory>

#include "mxtrain/device/blocked_layout.h"
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

// From the place of an element to that of its draw.
struct DrawIndex {
  BroadcastIndex plain;  // of plain arrays
  int64_t samples;       // above 0: one draw for each, in any layout that keeps samples apart

  DrawIndex(const TShape& data, const TShape& mask)
      : plain(data, mask),
        samples(mask != data && mask[0] == data[0] && mask.Size() == mask[0] ? mask[0] : 0) {}
};

template <typename T, typename Index>
struct Dropped {
  const T* x;
  Factor<T> factor;
  Index index;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    return AccumulatorOf<T>(x[i]) * factor(index(i));
  }
};
struct SampleOf {
  int64_t length;
  MXTRAIN_HD int64_t operator()(int64_t i) const { return i / length; }
};

// out = x times its factors, honouring the request.
template <typename T, typename Device>
void Drop(const Device& device, const TBlob& x, const Factor<T>& factor, const DrawIndex& index,
          OpReqType req, const TBlob& out) {
  if (index.samples > 0) {
    const SampleOf sample{std::max<int64_t>(out.StoredSize() / index.samples, 1)};
    MapOn<T>(device, out, req, Dropped<T, SampleOf>{x.dptr<T>(), factor, sample});
  } else {
    MapOn<T>(device, out, req, Dropped<T, BroadcastIndex>{x.dptr<T>(), factor, index.plain});
  }
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

template <bool kAdd, typename T>
MXTRAIN_SIMD void Scale(const T* x, AccumulatorOf<T> factor, int64_t n, T* y) {
  using A = AccumulatorOf<T>;
  for (int64_t k = 0; k < n; ++k) {
    const A value = A(x[k]) * factor;
    y[k] = static_cast<T>(kAdd ? A(y[k]) + value : value);
  }
}

// Where a sample has one draw.
template <typename T>
void DropSamples(const TBlob& x, const Factor<T>& factor, int64_t samples, OpReqType req,
                 const TBlob& out) {
  const int64_t size = out.StoredSize(), length = size / samples;
  SwitchReq(req, [&](auto accumulate) {
    ParallelFor(size, kParallelGrain, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t sample = begin / length, n = std::min(end, (sample + 1) * length) - begin;
        Scale<accumulate()>(x.dptr<T>() + begin, factor(sample), n, out.dptr<T>() + begin);
        begin += n;
      }
    });
  });
}

}  // namespace detail

// Where every element has a draw of its own: block by block.
template <typename T>
void Drop(const OnCpu& device, const TBlob& x, const Factor<T>& factor, const DrawIndex& index,
          OpReqType req, const TBlob& out) {
  if (index.samples > 0) return detail::DropSamples(x, factor, index.samples, req, out);
  if (!index.plain.same())
    return MapOn<T>(device, out, req, Dropped<T, BroadcastIndex>{x.dptr<T>(), factor, index.plain});
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
  Dropout(float p, bool drops, DrawIndex index) : keep_(1 - p), drops_(drops), index_(index) {}

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
  DrawIndex index_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& property = static_cast<const DropoutProperty&>(base);
  const bool drops = property.Drops(request.is_train);
  // Draws depend on an element's offset in the plain array, or on its sample alone; without draws
  // this is a copy, for any layout.
  const DrawIndex index(request.in[0].shape, request.out[1].shape);
  Plan plan = FlatPlan(base, request, true);
  if (drops && (index.samples == 0 || ChannelBlock(request.in[0].shape, plan.out[0]) == 0))
    plan = PlainPlan(base, request);
  plan.out[1] = Layout();
  plan.make = [p = property.param().p, drops, index] {
    return std::make_unique<Dropout<Device>>(p, drops, index);
  };
  return plan;
}

}  // namespace mxtrain::dropout

MXTRAIN_KERNELS(dropout, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("Dropout", dropout::MakePlan<Device>));
}
