// SPDX-License-Identifier: Apache-2.0
#pragma once
// Separable resampling of images [N, C, H, W], plain or channels last: every output element is a
// weighted sum of elements of its plane, and the weights are products of one factor per axis,
//
//   out[y, x] = sum over i, j of H(y, i) W(x, j) in[i, j]
//
// with the taps (taps.h) H and W. The gradient gathers too: in transposed lists, in ascending
// order. So results repeat bit for bit, for any number of threads. Written once for all devices: a
// GPU evaluates the taps where it needs them, the CPU has tables of them (resample_rows.h).
#include <algorithm>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/resample_rows.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operator/taps.h"

namespace mxtrain {

// The planes [height, width, inner] of an array: groups of adjacent planes. The groups of a range
// of channels, for example, are farther apart than they are long.
template <typename T>
struct PlaneArray {
  T* data = nullptr;
  int64_t count = 0;         // of planes
  int64_t group = 1;         // planes of a group
  int64_t group_stride = 0;  // elements

  MXTRAIN_HD T* Plane(int64_t plane, int64_t size) const {
    return data + plane / group * group_stride + plane % group * size;
  }
};

// All planes of an array whose pixels have `inner` elements: plain (1), or channels last.
template <typename T>
PlaneArray<T> AllPlanes(const TBlob& blob, int64_t inner) {
  const TShape& shape = blob.shape;
  const int64_t count = blob.layout.plain() ? shape[0] * shape[1] : shape[0];
  return {blob.dptr<T>(), count, std::max<int64_t>(count, 1), shape[2] * shape[3] * inner};
}

namespace detail {

template <typename T, typename Taps>
struct ResampleElement {
  using A = AccumulatorOf<T>;
  Taps h, w;
  int64_t inner;
  PlaneArray<const T> from;
  PlaneArray<T> to;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const int64_t c = at % inner, pixel = at / inner, x = pixel % w.out, row = pixel / w.out,
                  y = row % h.out, plane = row / h.out;
    const T* image = from.Plane(plane, h.in * w.in * inner) + c;
    const auto weight_of_row = h.template Weights<A>(y);
    const auto weight_of_column = w.template Weights<A>(x);
    const int64_t last_row = h.Last(y), first_column = w.First(x), last_column = w.Last(x);
    A sum = 0;
    for (int64_t i = h.First(y); i < last_row; ++i) {
      A line = 0;
      for (int64_t j = first_column; j < last_column; ++j)
        line += weight_of_column(j) * A(image[(i * w.in + j) * inner]);
      sum += weight_of_row(i) * line;
    }
    Assign(req, to.Plane(plane, h.out * w.out * inner), (y * w.out + x) * inner + c, sum);
  }
};

}  // namespace detail

// One resampling of planes [h.in, w.in, inner] to [h.out, w.out, inner], and its gradient.
// Lengths of axes are below 2^31.
template <typename Device, typename Taps>
class Resampler {
 public:
  Resampler(const Taps& h, const Taps& w, int64_t inner) : h_(h), w_(w), inner_(inner) {
    if constexpr (kTables) {
      forward_ = {TapTable(h), TapTable(w)};
      backward_ = {TapTable(Readers<Taps>(h)), TapTable(Readers<Taps>(w))};
    }
  }

  int64_t inner() const { return inner_; }
  int64_t in_size() const { return h_.in * w_.in * inner_; }  // of a plane
  int64_t out_size() const { return h_.out * w_.out * inner_; }

  // Bytes of the workspace, for a request's threads and the type of the arrays.
  int64_t ForwardWorkspace(int threads, DType type) const {
    return Workspace(forward_, threads, type);
  }
  int64_t BackwardWorkspace(int threads, DType type) const {
    return Workspace(backward_, threads, type);
  }

  template <typename T>
  void Forward(const OpContext& ctx, const PlaneArray<const T>& in, const PlaneArray<T>& out,
               OpReqType req) const {
    Run(ctx, h_, w_, forward_, in, out, req);
  }
  template <typename T>
  void Backward(const OpContext& ctx, const PlaneArray<const T>& out_grad,
                const PlaneArray<T>& in_grad, OpReqType req) const {
    Run(ctx, Readers<Taps>(h_), Readers<Taps>(w_), backward_, out_grad, in_grad, req);
  }

 private:
  static constexpr bool kTables = Device::kType == DeviceType::kCPU;
  struct Tables {
    TapTable h, w;
  };

  int64_t Workspace([[maybe_unused]] const Tables& tables, [[maybe_unused]] int threads,
                    [[maybe_unused]] DType type) const {
    if constexpr (kTables) {
      const int64_t element = type == DType::kFloat64 ? sizeof(double) : sizeof(float);
      return std::max(threads, 1) * ResampleRows<float>::Bytes(tables.h, tables.w, inner_, element);
    } else {
      return 0;
    }
  }

  template <typename T, typename AxisTaps>
  void Run(const OpContext& ctx, const AxisTaps& h, const AxisTaps& w,
           [[maybe_unused]] const Tables& tables, const PlaneArray<const T>& from,
           const PlaneArray<T>& to, OpReqType req) const {
    const int64_t size = to.count * h.out * w.out * inner_;
    if (req == OpReqType::kNullOp || size == 0) return;
    if constexpr (kTables) {
      RunRows(ctx, tables, from, to, req == OpReqType::kAddTo);
    } else {
      ForColumns(Device{ctx.run_ctx}, size, 1,
                 detail::ResampleElement<T, AxisTaps>{h, w, inner_, from, to, req});
    }
  }

  template <typename T>
  void RunRows(const OpContext& ctx, const Tables& tables, const PlaneArray<const T>& from,
               const PlaneArray<T>& to, bool add) const {
    const TapTable &h = tables.h, &w = tables.w;
    const int64_t in_size = h.in * w.in * inner_, out_row = w.out * inner_,
                  work = std::max(in_size / h.out, out_row);
    const int64_t bytes =
        ResampleRows<T>::Bytes(h, w, inner_, static_cast<int64_t>(sizeof(AccumulatorOf<T>)));
    ParallelForPieces(
        to.count * h.out, std::max<int64_t>(kParallelGrain / std::max<int64_t>(work, 1), 1),
        [&](int64_t begin, int64_t end, int piece) {
          ResampleRows<T> rows(h, w, inner_, ctx.workspace.dptr<char>() + piece * bytes);
          int64_t plane = begin / h.out, y = begin % h.out;
          for (int64_t row = begin; row < end; ++row) {
            rows.Row(y, from.Plane(plane, in_size), add,
                     to.Plane(plane, h.out * out_row) + y * out_row);
            if (++y < h.out) continue;
            y = 0;
            ++plane;
            rows.NextPlane();
          }
        });
  }

  Taps h_, w_;
  int64_t inner_;
  Tables forward_, backward_;  // empty unless kTables
};

// An operator that resamples input 0 to output 0; other inputs are not read.
template <typename Device, typename Taps>
class ResampleImages final : public Operator {
 public:
  ResampleImages(const char* who, const Resampler<Device, Taps>& resampler)
      : who_(who), resampler_(resampler) {}

  void Forward(const ForwardArgs& args) override {
    SwitchFloating(args.in_data[0].type, who_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      resampler_.Forward(args.ctx, AllPlanes<const T>(args.in_data[0], resampler_.inner()),
                         AllPlanes<T>(args.out_data[0], resampler_.inner()), args.req[0]);
    });
  }
  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.in_grad[0].type, who_, [&](auto tag) {
      using T = typename decltype(tag)::type;
      resampler_.Backward(args.ctx, AllPlanes<const T>(args.out_grad[0], resampler_.inner()),
                          AllPlanes<T>(args.in_grad[0], resampler_.inner()), args.req[0]);
    });
  }

 private:
  const char* who_;
  const Resampler<Device, Taps> resampler_;
};

// Its plan: channels last if the data are offered so. `who` outlives the plan.
template <typename Device, typename Taps>
Plan ResamplePlan(const OperatorProperty& property, const PlanRequest& request, const char* who,
                  const Taps& h, const Taps& w) {
  const TShape& data = request.in[0].shape;
  Plan plan = PlainPlan(property, request);
  const Layout layout = OfferedChannelsLast(request, data);
  plan.in[0] = plan.out[0] = layout;
  for (size_t i = 1; i < plan.in.size(); ++i) plan.in[i] = request.in_layout[i].value_or(Layout());
  const Resampler<Device, Taps> resampler(h, w, layout.plain() ? 1 : data[1]);
  plan.forward_workspace = resampler.ForwardWorkspace(request.threads, request.in[0].type);
  if (request.needs_backward)
    plan.backward_workspace = resampler.BackwardWorkspace(request.threads, request.in[0].type);
  plan.make = [who, resampler] {
    return std::make_unique<ResampleImages<Device, Taps>>(who, resampler);
  };
  return plan;
}

}  // namespace mxtrain
