// SPDX-License-Identifier: Apache-2.0
#pragma once
// Correlation, each result element by itself. Written once for both devices: Device is OnCpu or
// OnGpu.
#include <cmath>
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/correlation/correlation.h"

namespace mxtrain::correlation {

template <typename T>
struct Pair {
  using A = AccumulatorOf<T>;
  CorrelationGeometry geometry;
  bool multiply;
  const T *first, *second;

  // Cell (y, x) of the padded image of a channel; 0 in the padding.
  MXTRAIN_HD A At(const T* data, int64_t image, int64_t y, int64_t x) const {
    y -= geometry.pad;
    x -= geometry.pad;
    if (y < 0 || x < 0 || y >= geometry.in[0] || x >= geometry.in[1]) return 0;
    return A(data[image * geometry.cells() + y * geometry.in[1] + x]);
  }
  // The displacement of channel p (or o) along an axis.
  MXTRAIN_HD int64_t Displacement(int64_t index) const {
    return (index - geometry.radius) * geometry.stride2;
  }
};

template <typename T>
struct OutputElement : Pair<T> {
  using typename Pair<T>::A;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t i) const {
    const CorrelationGeometry& g = this->geometry;
    const int64_t x = i % g.out[1] * g.stride1 + g.displacement,
                  y = i / g.out[1] % g.out[0] * g.stride1 + g.displacement,
                  place = i / g.out[1] / g.out[0], n = place / (g.width() * g.width()),
                  dx = this->Displacement(place % g.width()),
                  dy = this->Displacement(place / g.width() % g.width());
    A sum = 0;
    for (int64_t c = 0; c < g.channels; ++c) {
      const int64_t image = n * g.channels + c;
      for (int64_t h = 0; h < g.kernel; ++h) {
        for (int64_t w = 0; w < g.kernel; ++w) {
          const A a = this->At(this->first, image, y + h, x + w),
                  b = this->At(this->second, image, y + dy + h, x + dx + w);
          sum += this->multiply ? a * b : std::abs(a - b);
        }
      }
    }
    Assign(req, out, i, sum / static_cast<A>(g.terms()));
  }
};

// Of data1, or of data2.
template <typename T, bool kSecond>
struct GradientElement : Pair<T> {
  using typename Pair<T>::A;
  const T* head;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t i) const {
    const CorrelationGeometry& g = this->geometry;
    const int64_t x = i % g.in[1] + g.pad, y = i / g.in[1] % g.in[0] + g.pad, image = i / g.cells(),
                  n = image / g.channels;
    A sum = 0;
    for (int64_t p = 0; p < g.width(); ++p) {
      for (int64_t o = 0; o < g.width(); ++o) {
        const int64_t dy = this->Displacement(p), dx = this->Displacement(o);
        // Where this cell is in data1's padded image, and its partner.
        const int64_t own_y = kSecond ? y - dy : y, own_x = kSecond ? x - dx : x;
        const A other = kSecond ? this->At(this->first, image, own_y, own_x)
                                : this->At(this->second, image, y + dy, x + dx);
        const A own = this->At(kSecond ? this->second : this->first, image, y, x);
        const bool larger = kSecond ? other < own : own >= other;  // ties: as data1 were larger
        const A slope = this->multiply ? other : larger ? A(1) : A(-1);
        sum += slope * Heads((n * g.width() + p) * g.width() + o, own_y, own_x);
      }
    }
    Assign(req, out, i, sum / static_cast<A>(g.terms()));
  }

 private:
  // The head gradients of the patches that contain cell (y, x), in one channel of the output.
  MXTRAIN_HD A Heads(int64_t place, int64_t y, int64_t x) const {
    A sum = 0;
    for (int64_t h = 0; h < this->geometry.kernel; ++h) {
      const int64_t row = PatchOf(0, y - h);
      if (row < 0) continue;
      for (int64_t w = 0; w < this->geometry.kernel; ++w) {
        const int64_t column = PatchOf(1, x - w);
        if (column >= 0)
          sum += A(head[(place * this->geometry.out[0] + row) * this->geometry.out[1] + column]);
      }
    }
    return sum;
  }
  // The patch that begins at a cell along an axis, or -1.
  MXTRAIN_HD int64_t PatchOf(int axis, int64_t begin) const {
    const int64_t at = begin - this->geometry.displacement;
    const bool begins = at >= 0 && at % this->geometry.stride1 == 0;
    return begins && at / this->geometry.stride1 < this->geometry.out[axis]
               ? at / this->geometry.stride1
               : -1;
  }
};

template <typename Device>
class Correlation final : public Operator {
 public:
  explicit Correlation(const CorrelationParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const TBlob& out = args.out_data[0];
    SwitchFloating(out.type, "Correlation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Pair<T> pair = PairOf<T>(args.in_data);
      ForColumns(Device{args.ctx.run_ctx}, out.Size(), pair.geometry.terms(),
                 OutputElement<T>{pair, out.dptr<T>(), args.req[0]});
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchFloating(args.out_grad[0].type, "Correlation", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Pair<T> pair = PairOf<T>(args.in_data);
      const int64_t work = pair.geometry.width() * pair.geometry.width() * pair.geometry.kernel *
                           pair.geometry.kernel;
      const T* head = args.out_grad[0].dptr<T>();
      const Device device{args.ctx.run_ctx};
      if (args.req[0] != OpReqType::kNullOp) {
        ForColumns(device, args.in_grad[0].Size(), work,
                   GradientElement<T, false>{pair, head, args.in_grad[0].dptr<T>(), args.req[0]});
      }
      if (args.req[1] != OpReqType::kNullOp) {
        ForColumns(device, args.in_grad[1].Size(), work,
                   GradientElement<T, true>{pair, head, args.in_grad[1].dptr<T>(), args.req[1]});
      }
    });
  }

 private:
  template <typename T>
  Pair<T> PairOf(std::span<const TBlob> in) const {
    return {CorrelationGeometry(param_, in[0].shape), param_.is_multiply, in[0].dptr<T>(),
            in[1].dptr<T>()};
  }

  CorrelationParam param_;
};

}  // namespace mxtrain::correlation

MXTRAIN_KERNELS(correlation, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(ReferenceKernel<CorrelationProperty, correlation::Correlation<Device>, Device>(
      "Correlation"));
}
