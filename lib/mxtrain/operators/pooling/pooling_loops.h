// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of Pooling; a maximum saves its place in the image for the gradient. Written
// once for both devices: Device is OnCpu or OnGpu.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/pooling/pooling.h"

namespace mxtrain::pooling {

template <typename T>
MXTRAIN_HD AccumulatorOf<T> Lowest() {
  if constexpr (std::is_same_v<T, float16>) {
    return -65504.0f;
  } else {
    return std::numeric_limits<AccumulatorOf<T>>::lowest();
  }
}
template <typename A>
MXTRAIN_HD A Power(A x, int p) {
  return p == 0 ? A(1) : p == 1 ? x : p == 2 ? x * x : x * x * x;
}

// The windows of a pooling in numbers.
struct Windows {
  PoolingAxis h, w;
  int type, p;
  bool include_pad;
  int64_t step;  // between adjacent cells of an image: 1, or the channels for channels last

  Windows(const PoolingParam& param, const TBlob& data, const TBlob& output)
      : h(AxisOf(param, data.shape, output.shape, 0)),
        w(AxisOf(param, data.shape, output.shape, 1)),
        type(param.pool_type),
        p(param.p_value.value_or(0)),
        include_pad(param.count_include_pad.value_or(true)),
        step(data.layout.plain() ? 1 : data.shape[1]) {}

  // The position of an element. `image`: a channel of an example; for channels last, an example,
  // and `channel` selects the channel.
  struct Place {
    int64_t image, cell, channel;
  };
  MXTRAIN_HD Place PlaceOf(int64_t at, int64_t cells) const {
    return {at / step / cells, at / step % cells, at % step};
  }
  // The first cell of the image of `place`, among images of `cells` cells.
  MXTRAIN_HD int64_t ImageOf(const Place& place, int64_t cells) const {
    return place.image * cells * step + place.channel;
  }

  MXTRAIN_HD int64_t cells() const { return h.in * w.in; }  // of an image
  MXTRAIN_HD int64_t count() const { return h.out * w.out; }
  MXTRAIN_HD int64_t Divisor(int64_t y, int64_t x) const {
    return type == PoolingParam::kSum ? 1 : PoolingCells(include_pad, h, w, y, x);
  }
  int64_t work() const { return h.kernel * w.kernel; }
};

template <typename T>
struct OutputElement {
  using A = AccumulatorOf<T>;
  Windows windows;
  const T* data;
  T* out;
  int32_t* places;  // of maxima in their images, -1 in an empty window; null: not wanted
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const auto place = windows.PlaceOf(at, windows.count());
    const int64_t y = place.cell / windows.w.out, x = place.cell % windows.w.out;
    const T* image = data + windows.ImageOf(place, windows.cells());
    const A value = windows.type == PoolingParam::kMax  ? Max(image, y, x, at)
                    : windows.type == PoolingParam::kLp ? Norm(image, y, x)
                                                        : Mean(image, y, x);
    Assign(req, out, at, value);
  }
  MXTRAIN_HD A Max(const T* image, int64_t y, int64_t x, int64_t at) const {
    A best = Lowest<T>();
    int64_t place = -1;
    for (int64_t i = windows.h.First(y); i < windows.h.Last(y); ++i) {
      for (int64_t j = windows.w.First(x); j < windows.w.Last(x); ++j) {
        const A value = A(image[(i * windows.w.in + j) * windows.step]);
        if (place >= 0 && !Beats(value, best)) continue;
        best = value;
        place = i * windows.w.in + j;
      }
    }
    if (places) places[at] = static_cast<int32_t>(place);
    return best;
  }
  MXTRAIN_HD A Mean(const T* image, int64_t y, int64_t x) const {
    A sum = 0;
    for (int64_t i = windows.h.First(y); i < windows.h.Last(y); ++i) {
      for (int64_t j = windows.w.First(x); j < windows.w.Last(x); ++j)
        sum += A(image[(i * windows.w.in + j) * windows.step]);
    }
    return sum / static_cast<A>(windows.Divisor(y, x));
  }
  MXTRAIN_HD A Norm(const T* image, int64_t y, int64_t x) const {
    A sum = 0;
    for (int64_t i = windows.h.First(y); i < windows.h.Last(y); ++i) {
      for (int64_t j = windows.w.First(x); j < windows.w.Last(x); ++j)
        sum += Power(std::abs(A(image[(i * windows.w.in + j) * windows.step])), windows.p);
    }
    return windows.p == 1 ? sum : windows.p == 2 ? std::sqrt(sum) : std::cbrt(sum);
  }
};

template <typename T>
struct GradientElement {
  using A = AccumulatorOf<T>;
  Windows windows;
  const T *head, *data, *norm;
  const int32_t* places;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const PoolingAxis &h = windows.h, &w = windows.w;
    const auto [image, cell, channel] = windows.PlaceOf(at, windows.cells());
    const int64_t first = windows.ImageOf({image, cell, channel}, windows.count()), i = cell / w.in,
                  j = cell % w.in;
    A sum = 0;
    for (int64_t y = h.FirstWindow(i); y < h.LastWindow(i); ++y) {
      for (int64_t x = w.FirstWindow(j); x < w.LastWindow(j); ++x)
        sum += Share(at, cell, first + (y * w.out + x) * windows.step, y, x);
    }
    Assign(req, out, at, sum);
  }
  // Of the head gradient of one window.
  MXTRAIN_HD A Share(int64_t at, int64_t cell, int64_t window, int64_t y, int64_t x) const {
    if (windows.type == PoolingParam::kMax) return places[window] == cell ? A(head[window]) : A(0);
    if (windows.type == PoolingParam::kLp)
      return A(head[window]) * NormSlope(A(data[at]), A(norm[window]));
    return A(head[window]) / static_cast<A>(windows.Divisor(y, x));
  }
  // d norm / d x = sign(x) (|x| / norm)^(p - 1); 0 at the kink.
  MXTRAIN_HD A NormSlope(A x, A length) const {
    if (x == 0 || length == 0) return 0;
    return std::copysign(Power(std::abs(x) / length, windows.p - 1), x);
  }
};

template <typename Device>
class PoolingReference final : public Operator {
 public:
  explicit PoolingReference(const PoolingParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Windows windows(param_, args.in_data[0], args.out_data[0]);
    int32_t* places = args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<int32_t>();
    SwitchFloating(args.in_data[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForColumns(Device{args.ctx.run_ctx}, args.out_data[0].Size(), windows.work(),
                 OutputElement<T>{windows, args.in_data[0].dptr<T>(), args.out_data[0].dptr<T>(),
                                  places, args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Windows windows(param_, args.in_grad[0], args.out_grad[0]);
    const int32_t* places = args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<int32_t>();
    SwitchFloating(args.in_grad[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForColumns(Device{args.ctx.run_ctx}, args.in_grad[0].Size(), windows.work(),
                 GradientElement<T>{windows, args.out_grad[0].dptr<T>(), args.in_data[0].dptr<T>(),
                                    args.out_data[0].dptr<T>(), places, args.in_grad[0].dptr<T>(),
                                    args.req[0]});
    });
  }

 private:
  PoolingParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const PoolingParam& param = static_cast<const PoolingProperty&>(base).param();
  Plan plan = PlainPlan(base, request);
  LieAs(OfferedChannelsLast(request, request.in[0].shape), base, request, &plan);
  if (request.needs_backward && param.pool_type == PoolingParam::kMax) {
    plan.saved = {request.out[0].shape.Size() * static_cast<int64_t>(sizeof(int32_t))};
    plan.backward_reads = BackwardReads{{true}, {false}, {false}};
  }
  plan.make = [param] { return std::make_unique<PoolingReference<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::pooling

MXTRAIN_KERNELS(pooling, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("Pooling", pooling::MakePlan<Device>));
}
