// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of Convolution, each result element by itself. Written once for both devices:
// Device is OnCpu or OnGpu.
#include <memory>

#include "mxtrain/operator/channel_moments.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain::convolution {

using P = ConvolutionProperty;

// Along an axis: the output index whose window has `in` cell `i` under tap `k`, or -1.
MXTRAIN_HD inline int64_t OutputOfTap(const ConvolutionGeometry& g, int axis, int64_t i,
                                      int64_t k) {
  const int64_t at = i + g.pad[axis] - k * g.dilate[axis];
  if (at < 0 || at % g.stride[axis] != 0 || at / g.stride[axis] >= g.out[axis]) return -1;
  return at / g.stride[axis];
}

// The input index under tap `k` of window `o`, or -1 in the padding.
MXTRAIN_HD inline int64_t InputOfTap(const ConvolutionGeometry& g, int axis, int64_t o, int64_t k) {
  const int64_t at = o * g.stride[axis] + k * g.dilate[axis] - g.pad[axis];
  return at < g.in[axis] ? at : -1;
}

// Element `at` of an array [.., channels, sizes...].
struct Place {
  int64_t first, channel, at[ConvolutionGeometry::kAxes];
  MXTRAIN_HD Place(int64_t i, int64_t channels, const int64_t* sizes) {
    for (int axis = ConvolutionGeometry::kAxes - 1; axis >= 0; --axis) {
      at[axis] = i % sizes[axis];
      i /= sizes[axis];
    }
    channel = i % channels;
    first = i / channels;
  }
};

template <typename T>
struct Loops {
  using A = AccumulatorOf<T>;
  ConvolutionGeometry geometry;

  MXTRAIN_HD static int64_t At(int64_t first, int64_t channels, int64_t channel,
                               const int64_t* sizes, int64_t a, int64_t b, int64_t c) {
    return (((first * channels + channel) * sizes[0] + a) * sizes[1] + b) * sizes[2] + c;
  }
  MXTRAIN_HD int64_t DataAt(int64_t n, int64_t c, int64_t z, int64_t y, int64_t x) const {
    return At(n, geometry.in_channels, c, geometry.in, z, y, x);
  }
  MXTRAIN_HD int64_t OutAt(int64_t n, int64_t o, int64_t z, int64_t y, int64_t x) const {
    return At(n, geometry.out_channels, o, geometry.out, z, y, x);
  }
  MXTRAIN_HD int64_t WeightAt(int64_t o, int64_t c, int64_t h, int64_t i, int64_t j) const {
    return At(o, geometry.group_in(), c, geometry.kernel, h, i, j);
  }
};

template <typename T>
struct OutputElement : Loops<T> {
  using typename Loops<T>::A;
  const T *data, *weight, *sum;
  TBlob bias;
  A low, high;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    Assign(req, out, at, Value(at));
  }
  MXTRAIN_HD A Value(int64_t at) const {
    const Place p(at, this->geometry.out_channels, this->geometry.out);
    const A value =
        Products(p) + weighted::BiasAt<T, A>(bias, p.channel) + (sum ? A(sum[at]) : A(0));
    return value < low ? low : value > high ? high : value;
  }
  MXTRAIN_HD A Products(const Place& p) const {
    const ConvolutionGeometry& g = this->geometry;
    const int64_t first = p.channel / g.group_out() * g.group_in();
    A total = 0;
    for (int64_t c = 0; c < g.group_in(); ++c) {
      for (int64_t h = 0; h < g.kernel[0]; ++h) {
        const int64_t iz = InputOfTap(g, 0, p.at[0], h);
        if (iz < 0) continue;
        for (int64_t i = 0; i < g.kernel[1]; ++i) {
          const int64_t iy = InputOfTap(g, 1, p.at[1], i);
          if (iy < 0) continue;
          for (int64_t j = 0; j < g.kernel[2]; ++j) {
            const int64_t ix = InputOfTap(g, 2, p.at[2], j);
            if (ix >= 0)
              total += A(data[this->DataAt(p.first, first + c, iz, iy, ix)]) *
                       A(weight[this->WeightAt(p.channel, c, h, i, j)]);
          }
        }
      }
    }
    return total;
  }
};

// Also the output of Deconvolution, which has a bias.
template <typename T>
struct DataGradientElement : Loops<T> {
  using typename Loops<T>::A;
  const T *head, *weight;
  TBlob bias;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    Assign(req, out, at, Value(at));
  }
  MXTRAIN_HD A Value(int64_t at) const {
    const ConvolutionGeometry& g = this->geometry;
    const Place p(at, g.in_channels, g.in);
    const int64_t first = p.channel / g.group_in() * g.group_out(),
                  within = p.channel % g.group_in();
    A sum = weighted::BiasAt<T, A>(bias, p.channel);
    for (int64_t h = 0; h < g.kernel[0]; ++h) {
      const int64_t z = OutputOfTap(g, 0, p.at[0], h);
      if (z < 0) continue;
      for (int64_t i = 0; i < g.kernel[1]; ++i) {
        const int64_t y = OutputOfTap(g, 1, p.at[1], i);
        if (y < 0) continue;
        for (int64_t j = 0; j < g.kernel[2]; ++j) {
          const int64_t x = OutputOfTap(g, 2, p.at[2], j);
          if (x < 0) continue;
          for (int64_t o = first; o < first + g.group_out(); ++o) {
            sum += A(head[this->OutAt(p.first, o, z, y, x)]) *
                   A(weight[this->WeightAt(o, within, h, i, j)]);
          }
        }
      }
    }
    return sum;
  }
};

template <typename T>
struct WeightGradientElement : Loops<T> {
  using typename Loops<T>::A;
  const T *head, *data;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t at) const {
    const ConvolutionGeometry& g = this->geometry;
    const Place p(at, g.group_in(), g.kernel);
    const int64_t channel = p.first / g.group_out() * g.group_in() + p.channel,
                  rows = g.batch * g.out[0];
    A sum = 0;
    for (int64_t row = team.rank(); row < rows; row += team.size()) {
      const int64_t n = row / g.out[0], z = row % g.out[0], iz = InputOfTap(g, 0, z, p.at[0]);
      if (iz < 0) continue;
      for (int64_t y = 0; y < g.out[1]; ++y) {
        const int64_t iy = InputOfTap(g, 1, y, p.at[1]);
        if (iy < 0) continue;
        for (int64_t x = 0; x < g.out[2]; ++x) {
          const int64_t ix = InputOfTap(g, 2, x, p.at[2]);
          if (ix >= 0)
            sum += A(head[this->OutAt(n, p.first, z, y, x)]) *
                   A(data[this->DataAt(n, channel, iz, iy, ix)]);
        }
      }
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, at, sum);
  }
};

// As a term of SumChannels: an element of the output, which may be unwritten, and its square.
template <typename T>
struct PowersOfElement {
  OutputElement<T> element;
  MXTRAIN_HD int64_t Of(int64_t channel) const { return channel; }
  MXTRAIN_HD TwoSums operator()(int64_t at, int64_t) const {
    const auto value = static_cast<double>(element.Value(at));
    return {value, value * value};
  }
};

// Two results of a channel.
template <typename A>
struct WriteSums {
  const TwoSums* from;
  A *first, *second;
  OpReqType first_req, second_req;
  MXTRAIN_HD void operator()(int64_t c) const {
    if (first_req != OpReqType::kNullOp) Assign(first_req, first, c, static_cast<A>(from[c].first));
    if (second_req != OpReqType::kNullOp)
      Assign(second_req, second, c, static_cast<A>(from[c].second));
  }
};

// The second output of _ConvolutionWithBatchNorm, from the terms of the first.
template <typename A, typename Device, typename Terms>
void SumOutput(const Device& device, const ChannelView& view, const Terms& terms, const TBlob& sums,
               OpReqType req, const TBlob& workspace) {
  const TwoSums* from = SumChannels<TwoSums>(device, view, terms, workspace);
  A* const to = sums.dptr<A>();
  Launch(device, view.channels, WriteSums<A>{from, to, to + view.channels, req, req});
}

// What _ConvolutionWithBatchNorm reads of a batch norm and ReLU before it. `Gradient`: that of the
// data, as Value(at).
template <typename T, typename Gradient>
struct Gated {
  using A = AccumulatorOf<T>;
  ChannelView view;
  Gradient gradient;
  const T* x;
  const A *mean, *inverse, *gamma, *beta;
  T* out;
  OpReqType req;

  MXTRAIN_HD A Normal(int64_t at, int64_t c) const { return (A(x[at]) - mean[c]) * inverse[c]; }
  MXTRAIN_HD A Value(int64_t at, int64_t c) const {
    return Normal(at, c) * gamma[c] + beta[c] > 0 ? A(gradient.Value(at)) : A(0);
  }
  // As a term of SumChannels ...
  MXTRAIN_HD int64_t Of(int64_t channel) const { return channel; }
  MXTRAIN_HD TwoSums operator()(int64_t at, int64_t c) const {
    const auto g = static_cast<double>(Value(at, c));
    return {g, g * static_cast<double>(Normal(at, c))};
  }
  // ... and written.
  MXTRAIN_HD void operator()(int64_t at) const {
    Assign(req, out, at, Value(at, view.ChannelOf(at)));
  }
};
template <typename T>
struct GradientInMemory {
  const T* gradient;
  MXTRAIN_HD T Value(int64_t at) const { return gradient[at]; }
};

// The gradients of _ConvolutionWithBatchNorm that pass ReLU: of the data, of mean and inverse.
template <typename T, typename Device, typename Gradient>
void WriteGated(const Device& device, const ConvolutionSettings& settings, const BackwardArgs& args,
                const Gradient& gradient) {
  using A = AccumulatorOf<T>;
  const auto at = [&](P::NormArgument i) { return static_cast<size_t>(P::IndexOf(settings, i)); };
  const auto norm = [&](P::NormArgument i) { return args.in_data[at(i)].template dptr<A>(); };
  const TBlob& x = args.in_data[at(P::kNormData)];
  const Gated<T, Gradient> gated{ChannelView(x.shape, 1, x.layout),
                                 gradient,
                                 x.dptr<T>(),
                                 norm(P::kNormMean),
                                 norm(P::kNormInverse),
                                 norm(P::kNormGamma),
                                 norm(P::kNormBeta),
                                 args.in_grad[P::kData].dptr<T>(),
                                 args.req[P::kData]};
  const WriteSums<A> sums{SumChannels<TwoSums>(device, gated.view, gated, args.ctx.workspace),
                          args.in_grad[at(P::kNormMean)].template dptr<A>(),
                          args.in_grad[at(P::kNormInverse)].template dptr<A>(),
                          args.req[at(P::kNormMean)], args.req[at(P::kNormInverse)]};
  Launch(device, gated.view.channels, sums);
  if (gated.req != OpReqType::kNullOp) Launch(device, x.shape.Size(), gated);
}

// Scratch bytes of the sums that forward and backward make by these loops.
inline int64_t BytesOfOutputSums(const ConvolutionSettings& settings, const PlanRequest& request,
                                 Layout out = {}) {
  if (!settings.sums_output) return 0;
  return BytesOfChannelSums<TwoSums>(ChannelView(request.out[P::kOutput].shape, 1, out));
}
inline int64_t BytesOfGatedSums(const ConvolutionSettings& settings, const PlanRequest& request,
                                Layout data = {}) {
  if (!settings.gates_gradient || !request.needs_backward) return 0;
  return BytesOfChannelSums<TwoSums>(ChannelView(request.in[P::kData].shape, 1, data));
}

template <typename Device>
class ConvolutionReference final : public Operator {
 public:
  explicit ConvolutionReference(const ConvolutionSettings& settings) : settings_(settings) {}

  void Forward(const ForwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_data[0].type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const TBlob bias = settings_.no_bias ? TBlob() : args.in_data[P::kBias];
      const Loops<T> loops{{settings_, args.in_data[P::kData].shape, args.out_data[0].shape}};
      const OutputElement<T> element{loops,
                                     args.in_data[P::kData].dptr<T>(),
                                     args.in_data[P::kWeight].dptr<T>(),
                                     settings_.with_sum ? args.in_data.back().dptr<T>() : nullptr,
                                     bias,
                                     A(settings_.low()),
                                     A(settings_.high()),
                                     args.out_data[0].dptr<T>(),
                                     args.req[0]};
      if (args.req[P::kOutput] != OpReqType::kNullOp) {
        ForColumns(device, args.out_data[0].Size(),
                   loops.geometry.group_in() * loops.geometry.window(), element);
      }
      if (settings_.sums_output && args.req[P::kSums] != OpReqType::kNullOp) {
        SumOutput<A>(device, ChannelView(args.out_data[0].shape, 1), PowersOfElement<T>{element},
                     args.out_data[P::kSums], args.req[P::kSums], args.ctx.workspace);
      }
    });
  }

  void Backward(const BackwardArgs& args) override {
    const Device device{args.ctx.run_ctx};
    SwitchFloating(args.in_grad[0].type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Loops<T> loops{{settings_, args.in_data[P::kData].shape, args.out_grad[0].shape}};
      const T *head = args.out_grad[0].dptr<T>(), *data = args.in_data[P::kData].dptr<T>(),
              *weight = args.in_data[P::kWeight].dptr<T>();
      const TBlob &data_grad = args.in_grad[P::kData], &weight_grad = args.in_grad[P::kWeight];
      const DataGradientElement<T> element{
          loops, head, weight, TBlob(), data_grad.dptr<T>(), args.req[P::kData]};
      if (settings_.gates_gradient) {
        WriteGated<T>(device, settings_, args, element);
      } else if (args.req[P::kData] != OpReqType::kNullOp) {
        ForColumns(device, data_grad.Size(), loops.geometry.group_out() * loops.geometry.window(),
                   element);
      }
      if (args.req[P::kWeight] != OpReqType::kNullOp) {
        ForRows(device, weight_grad.Size(), loops.geometry.batch * loops.geometry.out[0],
                WeightGradientElement<T>{loops, head, data, weight_grad.dptr<T>(),
                                         args.req[P::kWeight]});
      }
      if (!settings_.no_bias) {
        weighted::SumToBias<T>(device, args.out_grad[0], ChannelView(args.out_grad[0].shape, 1),
                               args.in_grad[P::kBias], args.req[P::kBias], args.ctx.workspace);
      }
    });
  }

 private:
  ConvolutionSettings settings_;
};

// Scratch bytes for the gradient of the bias, from a head gradient in this layout.
inline int64_t BiasWorkspace(const ConvolutionSettings& settings, const PlanRequest& request,
                             Layout head = {}) {
  if (!request.needs_backward || settings.no_bias) return 0;
  return weighted::BytesOfBiasSums(request.in[P::kData].type,
                                   ChannelView(request.out[0].shape, 1, head));
}

template <typename Device>
Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request,
                                      Backend&) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  if (base.TypeString() == P::kOperators[1] && request.needs_backward)
    return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.forward_workspace = BytesOfOutputSums(settings, request);
  plan.backward_workspace =
      std::max(BiasWorkspace(settings, request), BytesOfGatedSums(settings, request));
  plan.make = [settings] { return std::make_unique<ConvolutionReference<Device>>(settings); };
  return plan;
}

}  // namespace mxtrain::convolution

MXTRAIN_KERNELS(convolution, Device, registry) {
  using namespace mxtrain;
  using P = ConvolutionProperty;
  for (const char* op : {P::kOperators[0], P::kOperators[1], P::kWithBatchNorm})
    registry.AddKernel(LastKernel<Device>(op, convolution::PlanReference<Device>));
}
