// SPDX-License-Identifier: Apache-2.0
#pragma once
// im2col and col2im, each the gradient of the other. Written once for both devices: Device is OnCpu
// or OnGpu.
#include <memory>

#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution_loops.h"
#include "mxtrain/operators/im2col/im2col.h"

namespace mxtrain::im2col {

struct Columns {
  ConvolutionGeometry g;
  MXTRAIN_HD int64_t windows() const { return g.out[0] * g.out[1] * g.out[2]; }
};

// An element of the columns [N, C, cells of a window, windows].
template <typename T>
struct ColumnElement : Columns {
  const T* images;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    const convolution::Place window(i, g.window(), g.out);
    const convolution::Place tap(window.channel, 1, g.kernel);
    int64_t at = window.first;  // of the batch, and its channel
    for (int axis = 0; axis < ConvolutionGeometry::kAxes; ++axis) {
      const int64_t cell = convolution::InputOfTap(g, axis, window.at[axis], tap.at[axis]);
      if (cell < 0) return 0;
      at = at * g.in[axis] + cell;
    }
    return AccumulatorOf<T>(images[at]);
  }
};

// An element of the images [N, C, ...]: the sum of its places in the columns.
template <typename T>
struct ImageElement : Columns {
  const T* columns;
  MXTRAIN_HD AccumulatorOf<T> operator()(int64_t i) const {
    const convolution::Place cell(i, g.in_channels, g.in);
    const T* of_channel =
        columns + (cell.first * g.in_channels + cell.channel) * g.window() * windows();
    AccumulatorOf<T> sum = 0;
    for (int64_t h = 0; h < g.kernel[0]; ++h) {
      const int64_t z = convolution::OutputOfTap(g, 0, cell.at[0], h);
      if (z < 0) continue;
      for (int64_t k = 0; k < g.kernel[1]; ++k) {
        const int64_t y = convolution::OutputOfTap(g, 1, cell.at[1], k);
        if (y < 0) continue;
        for (int64_t l = 0; l < g.kernel[2]; ++l) {
          const int64_t x = convolution::OutputOfTap(g, 2, cell.at[2], l);
          if (x < 0) continue;
          const int64_t tap = (h * g.kernel[1] + k) * g.kernel[2] + l,
                        window = (z * g.out[1] + y) * g.out[2] + x;
          sum += AccumulatorOf<T>(of_channel[tap * windows() + window]);
        }
      }
    }
    return sum;
  }
};

// kToColumns: im2col, else col2im.
template <typename Device, bool kToColumns>
class Unfold final : public Operator {
 public:
  explicit Unfold(const ConvolutionGeometry& geometry) : geometry_(geometry) {}
  void Forward(const ForwardArgs& args) override {
    Run<kToColumns>(args.ctx, args.in_data[0], args.req[0], args.out_data[0]);
  }
  void Backward(const BackwardArgs& args) override {
    Run<!kToColumns>(args.ctx, args.out_grad[0], args.req[0], args.in_grad[0]);
  }

 private:
  template <bool kColumns>
  void Run(const OpContext& ctx, const TBlob& from, OpReqType req, const TBlob& to) const {
    SwitchFloating(from.type, "im2col", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using Element = std::conditional_t<kColumns, ColumnElement<T>, ImageElement<T>>;
      MapOn<T>(Device{ctx.run_ctx}, to, req, Element{{geometry_}, from.dptr<T>()});
    });
  }

  ConvolutionGeometry geometry_;
};

template <typename Device, typename Property, bool kToColumns>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const auto& param = static_cast<const Property&>(base).param();
  Plan plan = PlainPlan(base, request);
  const TShape& images = kToColumns ? request.in[0].shape : request.out[0].shape;
  plan.make = [geometry = param.GeometryOf(images)] {
    return std::make_unique<Unfold<Device, kToColumns>>(geometry);
  };
  return plan;
}

}  // namespace mxtrain::im2col

MXTRAIN_KERNELS(im2col, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("im2col", im2col::MakePlan<Device, Im2colProperty, true>));
  registry.AddKernel(LastKernel<Device>("col2im", im2col::MakePlan<Device, Col2imProperty, false>));
}
