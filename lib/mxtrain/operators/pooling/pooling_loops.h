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
struct Windows : PoolingAxes {
  int type, p;
  bool include_pad;
  int64_t step;  // between adjacent cells of an image: 1, or the channels for channels last

  Windows(const PoolingParam& param, const TBlob& data, const TBlob& output)
      : PoolingAxes(AxesOf(param, data.shape, output.shape)),
        type(param.pool_type),
        p(param.p_value.value_or(0)),
        include_pad(param.count_include_pad.value_or(true)),
        step(data.layout.plain() ? 1 : data.shape[1]) {}

  // The position of an element. `image`: a channel of an example; for channels last, an example,
  // and `channel` selects the channel.
  struct Place {
    int64_t image, cell, channel;
  };
  MXTRAIN_HD Place PlaceOf(int64_t at, int64_t count) const {
    return {at / step / count, at / step % count, at % step};
  }
  // The first cell of the image of `place`, among images of `count` cells.
  MXTRAIN_HD int64_t ImageOf(const Place& place, int64_t count) const {
    return place.image * count * step + place.channel;
  }

  MXTRAIN_HD int64_t Divisor(int64_t z, int64_t y, int64_t x) const {
    return type == PoolingParam::kSum ? 1 : PoolingCells(include_pad, *this, z, y, x);
  }
};

// Parts of a fold over the cells of a window, in scan order: fold(value, cell).
template <typename A>
struct FoldMax {
  A best;
  int64_t place = -1;
  MXTRAIN_HD void operator()(A value, int64_t cell) {
    if (place >= 0 && !Beats(value, best)) return;
    best = value;
    place = cell;
  }
};
template <typename A>
struct FoldSum {
  A sum = 0;
  MXTRAIN_HD void operator()(A value, int64_t) { sum += value; }
};
template <typename A>
struct FoldPowers {
  int p;
  A sum = 0;
  MXTRAIN_HD void operator()(A value, int64_t) { sum += Power(std::abs(value), p); }
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
    const auto place = windows.PlaceOf(at, windows.windows());
    const int64_t x = place.cell % windows.w.out, y = place.cell / windows.w.out % windows.h.out,
                  z = place.cell / windows.w.out / windows.h.out;
    const T* image = data + windows.ImageOf(place, windows.cells());
    if (windows.type == PoolingParam::kMax) {
      FoldMax<A> fold{Lowest<T>()};
      ForCells(image, z, y, x, fold);
      if (places) places[at] = static_cast<int32_t>(fold.place);
      Assign(req, out, at, fold.best);
    } else if (windows.type == PoolingParam::kLp) {
      FoldPowers<A> fold{windows.p};
      ForCells(image, z, y, x, fold);
      Assign(req, out, at,
             windows.p == 1   ? fold.sum
             : windows.p == 2 ? std::sqrt(fold.sum)
                              : std::cbrt(fold.sum));
    } else {
      FoldSum<A> fold;
      ForCells(image, z, y, x, fold);
      Assign(req, out, at, fold.sum / static_cast<A>(windows.Divisor(z, y, x)));
    }
  }
  template <typename Fold>
  MXTRAIN_HD void ForCells(const T* image, int64_t z, int64_t y, int64_t x, Fold& fold) const {
    for (int64_t h = windows.d.First(z); h < windows.d.Last(z); ++h) {
      for (int64_t i = windows.h.First(y); i < windows.h.Last(y); ++i) {
        for (int64_t j = windows.w.First(x); j < windows.w.Last(x); ++j) {
          const int64_t cell = (h * windows.h.in + i) * windows.w.in + j;
          fold(A(image[cell * windows.step]), cell);
        }
      }
    }
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
    const PoolingAxis &d = windows.d, &h = windows.h, &w = windows.w;
    const auto [image, cell, channel] = windows.PlaceOf(at, windows.cells());
    const int64_t first = windows.ImageOf({image, cell, channel}, windows.windows()),
                  j = cell % w.in, i = cell / w.in % h.in, layer = cell / w.in / h.in;
    A sum = 0;
    for (int64_t z = d.FirstWindow(layer); z < d.LastWindow(layer); ++z) {
      for (int64_t y = h.FirstWindow(i); y < h.LastWindow(i); ++y) {
        for (int64_t x = w.FirstWindow(j); x < w.LastWindow(j); ++x)
          sum += Share(at, cell, first + ((z * h.out + y) * w.out + x) * windows.step, z, y, x);
      }
    }
    Assign(req, out, at, sum);
  }
  // Of the head gradient of one window.
  MXTRAIN_HD A Share(int64_t at, int64_t cell, int64_t window, int64_t z, int64_t y,
                     int64_t x) const {
    if (windows.type == PoolingParam::kMax) return places[window] == cell ? A(head[window]) : A(0);
    if (windows.type == PoolingParam::kLp)
      return A(head[window]) * NormSlope(A(data[at]), A(norm[window]));
    return A(head[window]) / static_cast<A>(windows.Divisor(z, y, x));
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
      ForColumns(Device{args.ctx.run_ctx}, args.out_data[0].Size(), windows.window(),
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
      ForColumns(Device{args.ctx.run_ctx}, args.in_grad[0].Size(), windows.window(),
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
  const int64_t cells = request.in[0].shape.Product(2, request.in[0].shape.ndim());
  if (request.needs_backward && param.pool_type == PoolingParam::kMax &&
      cells > std::numeric_limits<int32_t>::max()) {
    return Refusal{
        format("{} cells of an image; the gradient of a maximum takes at most 2^31 - 1", cells)};
  }
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
