// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of Convolution, each result element by itself. Written once for both devices:
// Device is OnCpu or OnGpu.
#include <memory>

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

// Element `at` of an array [.., b, c, d] as (a, b, c, d).
struct Place4 {
  int64_t a, b, c, d;
  MXTRAIN_HD Place4(int64_t at, int64_t size_b, int64_t size_c, int64_t size_d)
      : a(at / (size_b * size_c * size_d)),
        b(at / (size_c * size_d) % size_b),
        c(at / size_d % size_c),
        d(at % size_d) {}
};

template <typename T>
struct Loops {
  using A = AccumulatorOf<T>;
  ConvolutionGeometry geometry;

  MXTRAIN_HD int64_t DataAt(int64_t n, int64_t c, int64_t y, int64_t x) const {
    return ((n * geometry.in_channels + c) * geometry.in[0] + y) * geometry.in[1] + x;
  }
  MXTRAIN_HD int64_t OutAt(int64_t n, int64_t o, int64_t y, int64_t x) const {
    return ((n * geometry.out_channels + o) * geometry.out[0] + y) * geometry.out[1] + x;
  }
  MXTRAIN_HD int64_t WeightAt(int64_t o, int64_t c, int64_t i, int64_t j) const {
    return ((o * geometry.group_in() + c) * geometry.kernel[0] + i) * geometry.kernel[1] + j;
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
    const ConvolutionGeometry& g = this->geometry;
    const Place4 p(at, g.out_channels, g.out[0], g.out[1]);
    const A value = Products(p) + weighted::BiasAt<T, A>(bias, p.b) + (sum ? A(sum[at]) : A(0));
    Assign(req, out, at, value < low ? low : value > high ? high : value);
  }
  MXTRAIN_HD A Products(const Place4& p) const {
    const ConvolutionGeometry& g = this->geometry;
    const int64_t first = p.b / g.group_out() * g.group_in();
    A total = 0;
    for (int64_t c = 0; c < g.group_in(); ++c) {
      for (int64_t i = 0; i < g.kernel[0]; ++i) {
        const int64_t iy = InputOfTap(g, 0, p.c, i);
        if (iy < 0) continue;
        for (int64_t j = 0; j < g.kernel[1]; ++j) {
          const int64_t ix = InputOfTap(g, 1, p.d, j);
          if (ix >= 0)
            total += A(data[this->DataAt(p.a, first + c, iy, ix)]) *
                     A(weight[this->WeightAt(p.b, c, i, j)]);
        }
      }
    }
    return total;
  }
};

template <typename T>
struct DataGradientElement : Loops<T> {
  using typename Loops<T>::A;
  const T *head, *weight;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const ConvolutionGeometry& g = this->geometry;
    const Place4 p(at, g.in_channels, g.in[0], g.in[1]);
    const int64_t first = p.b / g.group_in() * g.group_out(), within = p.b % g.group_in();
    A sum = 0;
    for (int64_t i = 0; i < g.kernel[0]; ++i) {
      const int64_t y = OutputOfTap(g, 0, p.c, i);
      if (y < 0) continue;
      for (int64_t j = 0; j < g.kernel[1]; ++j) {
        const int64_t x = OutputOfTap(g, 1, p.d, j);
        if (x < 0) continue;
        for (int64_t o = first; o < first + g.group_out(); ++o) {
          sum += A(head[this->OutAt(p.a, o, y, x)]) * A(weight[this->WeightAt(o, within, i, j)]);
        }
      }
    }
    Assign(req, out, at, sum);
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
    const Place4 p(at, g.group_in(), g.kernel[0], g.kernel[1]);
    const int64_t channel = p.a / g.group_out() * g.group_in() + p.b, rows = g.batch * g.out[0];
    A sum = 0;
    for (int64_t row = team.rank(); row < rows; row += team.size()) {
      const int64_t n = row / g.out[0], y = row % g.out[0], iy = InputOfTap(g, 0, y, p.c);
      if (iy < 0) continue;
      for (int64_t x = 0; x < g.out[1]; ++x) {
        const int64_t ix = InputOfTap(g, 1, x, p.d);
        if (ix >= 0)
          sum += A(head[this->OutAt(n, p.a, y, x)]) * A(data[this->DataAt(n, channel, iy, ix)]);
      }
    }
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(req, out, at, sum);
  }
};

template <typename Device>
class ConvolutionReference final : public Operator {
 public:
  explicit ConvolutionReference(const ConvolutionSettings& settings) : settings_(settings) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    SwitchFloating(args.in_data[0].type, "Convolution", [&](auto tag) {
      using T = typename decltype(tag)::type;
      using A = AccumulatorOf<T>;
      const TBlob bias = settings_.no_bias ? TBlob() : args.in_data[P::kBias];
      const OutputElement<T> element{
          {{settings_, args.in_data[P::kData].shape, args.out_data[0].shape}},
          args.in_data[P::kData].dptr<T>(),
          args.in_data[P::kWeight].dptr<T>(),
          settings_.with_sum ? args.in_data.back().dptr<T>() : nullptr,
          bias,
          A(settings_.low()),
          A(settings_.high()),
          args.out_data[0].dptr<T>(),
          args.req[0]};
      ForColumns(Device{args.ctx.run_ctx}, args.out_data[0].Size(),
                 args.in_data[P::kWeight].shape.Product(1, 4), element);
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
      if (args.req[P::kData] != OpReqType::kNullOp) {
        ForColumns(
            device, data_grad.Size(),
            loops.geometry.group_out() * settings_.kernel[0] * settings_.kernel[1],
            DataGradientElement<T>{loops, head, weight, data_grad.dptr<T>(), args.req[P::kData]});
      }
      if (args.req[P::kWeight] != OpReqType::kNullOp) {
        ForRows(device, weight_grad.Size(), loops.geometry.batch * loops.geometry.out[0],
                WeightGradientElement<T>{loops, head, data, weight_grad.dptr<T>(),
                                         args.req[P::kWeight]});
      }
      if (!settings_.no_bias) {
        weighted::SumToBias<T>(device, args.out_grad[0], ChannelView(args.out_grad[0].shape, 1),
                               args.in_grad[P::kBias], args.req[P::kBias], args.ctx.workspace.data);
      }
    });
  }

 private:
  ConvolutionSettings settings_;
};

// Scratch bytes for the gradient of the bias.
inline int64_t BiasWorkspace(const ConvolutionSettings& settings, const PlanRequest& request) {
  if (!request.needs_backward || settings.no_bias) return 0;
  return weighted::BytesOfBiasSums(request.in[P::kData].type, ChannelView(request.out[0].shape, 1));
}

template <typename Device>
Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request,
                                      Backend&) {
  const ConvolutionSettings& settings = static_cast<const ConvolutionProperty&>(base).settings();
  if (base.TypeString() != P::kOperators[0] && request.needs_backward)
    return Refusal{"has no gradient"};
  Plan plan = PlainPlan(base, request);
  plan.backward_workspace = BiasWorkspace(settings, request);
  plan.make = [settings] { return std::make_unique<ConvolutionReference<Device>>(settings); };
  return plan;
}

}  // namespace mxtrain::convolution

MXTRAIN_KERNELS(convolution, Device, registry) {
  using namespace mxtrain;
  for (const char* op : ConvolutionProperty::kOperators)
    registry.AddKernel(LastKernel<Device>(op, convolution::PlanReference<Device>));
}
