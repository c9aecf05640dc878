// SPDX-License-Identifier: Apache-2.0
#pragma once
// Depthwise convolutions of images on a GPU: one channel in, one out. They are bound by memory, so
// a thread computes packs of adjacent channels, channels last, and a kernel reads every array once
// from memory and then from caches. Libraries run them as convolutions of many groups.
//
// Sums are float32. The weight is copied to [taps, channels] in float32 first, for packs of it.
#include <memory>

#include "mxtrain/operator/channel_sums.h"
#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution_by_library.h"

namespace mxtrain::convolution::depthwise {

// Of a convolution of images [batch, height, width, channels], or of one of its gradients.
struct Images {
  int64_t batch, channels, in[2], out[2], pad[2];

  explicit Images(const ConvolutionGeometry& g)
      : batch(g.batch),
        channels(g.in_channels),
        in{g.in[0], g.in[1]},
        out{g.out[0], g.out[1]},
        pad{g.pad[0], g.pad[1]} {}
  // Of the data gradient, where the stride is 1: the convolution of the head gradient with the
  // turned weight.
  Images Turned(int kernel) const {
    Images turned = *this;
    for (int i = 0; i < 2; ++i) {
      turned.in[i] = out[i];
      turned.out[i] = in[i];
      turned.pad[i] = kernel - 1 - pad[i];
    }
    return turned;
  }
  MXTRAIN_HD int64_t InputAt(int64_t n, int64_t y, int64_t x) const {
    return ((n * in[0] + y) * in[1] + x) * channels;
  }
  MXTRAIN_HD int64_t OutputAt(int64_t n, int64_t y, int64_t x) const {
    return ((n * out[0] + y) * out[1] + x) * channels;
  }
  int64_t pixels() const { return batch * out[0] * out[1]; }  // of the output
};

// [channels, taps] to [taps, channels]; `turned`: the taps in reverse order.
template <typename T>
struct SpreadWeight {
  const T* weight;
  int64_t taps;
  FastDivider channels;
  bool turned;
  float* to;
  MXTRAIN_HD void operator()(int64_t i) const {
    int64_t tap = 0, channel = 0;
    channels.Divide(i, &tap, &channel);
    to[i] = static_cast<float>(weight[channel * taps + (turned ? taps - 1 - tap : tap)]);
  }
};

template <typename T>
struct Ending {
  TBlob bias;
  const T* sum = nullptr;
  float low = -std::numeric_limits<float>::infinity(),
        high = std::numeric_limits<float>::infinity();
};

// kAcross adjacent outputs of a row.
template <typename T, int kKernel, int kStride>
struct Outputs {
  static constexpr int kPack = kPackOf<T>, kAcross = 4;
  using Pack = ChannelPack<T, kPack>;
  using Weights = ChannelPack<float, kPack>;
  Images images;
  const T* data;
  const float* weight;  // [taps, channels]
  Ending<T> ending;
  T* out;
  OpReqType req;
  FastDivider packs, blocks, height;

  Outputs(const Images& i, const T* d, const float* w, const Ending<T>& e, T* o, OpReqType r)
      : images(i),
        data(d),
        weight(w),
        ending(e),
        out(o),
        req(r),
        packs(i.channels / kPack),
        blocks(CeilDivide(i.out[1], int64_t{kAcross})),
        height(i.out[0]) {}
  int64_t tasks() const {
    return images.batch * images.out[0] * CeilDivide(images.out[1], int64_t{kAcross}) *
           (images.channels / kPack);
  }

  MXTRAIN_HD void operator()(int64_t task) const {
    int64_t rest = 0, pack = 0, block = 0, n = 0, y = 0;
    packs.Divide(task, &rest, &pack);
    blocks.Divide(rest, &rest, &block);
    height.Divide(rest, &n, &y);
    const int64_t channel = pack * kPack, x = block * kAcross,
                  first_y = y * kStride - images.pad[0], first_x = x * kStride - images.pad[1];
    float sums[kAcross][kPack] = {};
    for (int i = 0; i < kKernel; ++i) {
      if (first_y + i < 0 || first_y + i >= images.in[0]) continue;
      Weights weights[kKernel];
      ForPack<kKernel>([&](int j) {
        weights[j] = Weights::At(weight + (i * kKernel + j) * images.channels + channel);
      });
      const T* const row = data + images.InputAt(n, first_y + i, 0) + channel;
      ForPack<(kAcross - 1) * kStride + kKernel>([&](int column) {
        const int64_t at = first_x + column;
        if (at < 0 || at >= images.in[1]) return;
        const Pack elements = Pack::At(row + at * images.channels);
        ForPack<kAcross>([&](int o) {
          const int j = column - o * kStride;
          if (j < 0 || j >= kKernel) return;
          ForPack<kPack>(
              [&](int k) { sums[o][k] += static_cast<float>(elements.v[k]) * weights[j].v[k]; });
        });
      });
    }
    ForPack<kAcross>([&](int o) {
      if (x + o < images.out[1]) Put(images.OutputAt(n, y, x + o) + channel, channel, sums[o]);
    });
  }

 private:
  MXTRAIN_HD void Put(int64_t at, int64_t channel, const float (&sums)[kPack]) const {
    Pack result{}, sum{};
    if (req == OpReqType::kAddTo) result = Pack::At(out + at);
    if (ending.sum) sum = Pack::At(ending.sum + at);
    ForPack<kPack>([&](int k) {
      const float value = sums[k] + weighted::BiasAt<T, float>(ending.bias, channel + k) +
                          static_cast<float>(sum.v[k]);
      Assign(req, result.v, k,
             value < ending.low    ? ending.low
             : value > ending.high ? ending.high
                                   : value);
    });
    result.Put(out + at);
  }
};

// The gradient of the data for a stride above 1, pixel by pixel.
template <typename T, int kKernel, int kStride>
struct DataGradients {
  static constexpr int kPack = kPackOf<T>;
  using Pack = ChannelPack<T, kPack>;
  using Weights = ChannelPack<float, kPack>;
  Images images;
  const T* head;
  const float* weight;  // [taps, channels]
  T* out;
  OpReqType req;
  FastDivider packs, width, height;

  DataGradients(const Images& i, const T* h, const float* w, T* o, OpReqType r)
      : images(i),
        head(h),
        weight(w),
        out(o),
        req(r),
        packs(i.channels / kPack),
        width(i.in[1]),
        height(i.in[0]) {}
  int64_t tasks() const {
    return images.batch * images.in[0] * images.in[1] * (images.channels / kPack);
  }

  MXTRAIN_HD void operator()(int64_t task) const {
    int64_t rest = 0, pack = 0, n = 0, y = 0, x = 0;
    packs.Divide(task, &rest, &pack);
    width.Divide(rest, &rest, &x);
    height.Divide(rest, &n, &y);
    const int64_t channel = pack * kPack;
    float sums[kPack] = {};
    const Windows over_y(y + images.pad[0], images.out[0]),
        over_x(x + images.pad[1], images.out[1]);
    for (int64_t v = over_y.begin; v < over_y.end; ++v) {
      const int64_t i = y + images.pad[0] - v * kStride;
      for (int64_t u = over_x.begin; u < over_x.end; ++u) {
        const int64_t j = x + images.pad[1] - u * kStride;
        const Pack heads = Pack::At(head + images.OutputAt(n, v, u) + channel);
        const Weights weights = Weights::At(weight + (i * kKernel + j) * images.channels + channel);
        ForPack<kPack>([&](int k) { sums[k] += static_cast<float>(heads.v[k]) * weights.v[k]; });
      }
    }
    const int64_t at = images.InputAt(n, y, x) + channel;
    Pack result{};
    if (req == OpReqType::kAddTo) result = Pack::At(out + at);
    ForPack<kPack>([&](int k) { Assign(req, result.v, k, sums[k]); });
    result.Put(out + at);
  }

 private:
  // The windows along an axis that contain the cell `padded`, counted from the padding on.
  struct Windows {
    int64_t begin, end;
    MXTRAIN_HD Windows(int64_t padded, int64_t count) {
      begin = padded < kKernel ? 0 : (padded - kKernel) / kStride + 1;
      end = padded / kStride + 1 < count ? padded / kStride + 1 : count;
    }
  };
};

// A slice of the pixels' part of the weight's gradient. As ChannelPackPart: members of a team have
// packs side by side, and pixels.
template <typename T, int kKernel, int kStride>
struct WeightPart {
  // As many sums as there are registers for.
  static constexpr int kPack = kKernel == 3   ? kPackOf<T>
                               : kKernel == 5 ? 4
                                              : 2,
                       kTaps = kKernel * kKernel;
  static constexpr int kMostAcross = 32, kThreads = 256;
  using Pack = ChannelPack<T, kPack>;
  Images images;
  const T *head, *data;
  int across;
  Slices slices;
  float* parts;  // [channels, taps, slices]
  FastDivider width, height;

  WeightPart(const Images& i, int members, const T* h, const T* d, float* p)
      : images(i),
        head(h),
        data(d),
        across(static_cast<int>(std::min<int64_t>({kMostAcross, members, i.channels / kPack}))),
        slices(Slices::OfColumns(groups() * kThreads, i.pixels())),
        parts(p),
        width(i.out[1]),
        height(i.out[0]) {}
  MXTRAIN_HD int64_t packs() const { return images.channels / kPack; }
  MXTRAIN_HD int64_t groups() const { return (packs() + across - 1) / across; }
  int64_t tasks() const { return groups() * slices.count; }
  int64_t elements() const { return images.channels * kTaps; }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const int64_t group = task % groups() * across, slice = task / groups(),
                  pack = group + team.rank() % across;
    const int lane = team.rank() / across, lanes = team.size() / across;
    float sums[kKernel][kKernel * kPack] = {};
    if (lane < lanes && pack < packs()) {
      const int64_t end = slices.Begin(slice + 1);
      for (int64_t pixel = slices.Begin(slice) + lane; pixel < end; pixel += lanes)
        AddPixel(pixel, pack * kPack, sums);
    }
    ForPack<kKernel>([&](int i) {
      SumColumns(team, across, sums[i], [&](int column, int at, float sum) {
        if (group + column >= packs()) return;
        const int64_t channel = (group + column) * kPack + at % kPack;
        parts[(channel * kTaps + i * kKernel + at / kPack) * slices.count + slice] = sum;
      });
    });
  }

 private:
  MXTRAIN_HD void AddPixel(int64_t pixel, int64_t channel,
                           float (&sums)[kKernel][kKernel * kPack]) const {
    int64_t row = 0, n = 0, y = 0, x = 0;
    width.Divide(pixel, &row, &x);
    height.Divide(row, &n, &y);
    const Pack heads = Pack::At(head + pixel * images.channels + channel);
    const int64_t first_y = y * kStride - images.pad[0], first_x = x * kStride - images.pad[1];
    ForPack<kKernel>([&](int i) {
      if (first_y + i < 0 || first_y + i >= images.in[0]) return;
      const T* const line = data + images.InputAt(n, first_y + i, 0) + channel;
      ForPack<kKernel>([&](int j) {
        const int64_t at = first_x + j;
        if (at < 0 || at >= images.in[1]) return;
        const Pack elements = Pack::At(line + at * images.channels);
        ForPack<kPack>([&](int k) {
          sums[i][j * kPack + k] +=
              static_cast<float>(heads.v[k]) * static_cast<float>(elements.v[k]);
        });
      });
    });
  }
};

template <typename T>
struct PutWeight {
  T* to;
  OpReqType req;
  MXTRAIN_HD void operator()(int64_t i, float sum) const { Assign(req, to, i, sum); }
};

// f(std::integral_constant of the kernel, of the stride).
template <typename F>
void SwitchWindow(const ConvolutionGeometry& g, const F& f) {
  const auto with_stride = [&](auto kernel) {
    g.stride[0] == 1 ? f(kernel, std::integral_constant<int, 1>())
                     : f(kernel, std::integral_constant<int, 2>());
  };
  switch (g.kernel[0]) {
    case 3:
      return with_stride(std::integral_constant<int, 3>());
    case 5:
      return with_stride(std::integral_constant<int, 5>());
    default:
      MXTRAIN_ASSERT(g.kernel[0] == 7);
      return with_stride(std::integral_constant<int, 7>());
  }
}

// f(tag) for the types of this kernel.
template <typename F>
void SwitchPacked(DType type, const F& f) {
  switch (type) {
    case DType::kFloat16:
      return f(TypeTag<float16>());
    case DType::kBfloat16:
      return f(TypeTag<bfloat16>());
    default:
      MXTRAIN_ASSERT(type == DType::kFloat32);
      return f(TypeTag<float>());
  }
}

// Bytes of the spread weight.
inline int64_t WeightBytes(const ConvolutionGeometry& g) {
  return g.in_channels * g.window() * static_cast<int64_t>(sizeof(float));
}
// Bytes of the parts of its gradient.
template <typename Device>
int64_t PartBytes(DType type, const ConvolutionGeometry& g) {
  int64_t bytes = 0;
  SwitchPacked(type, [&](auto tag) {
    using T = typename decltype(tag)::type;
    SwitchWindow(g, [&](auto kernel, auto stride) {
      const WeightPart<T, kernel(), stride()> part(Images(g), MembersOf<Device>(), nullptr, nullptr,
                                                   nullptr);
      bytes = part.elements() * part.slices.count * static_cast<int64_t>(sizeof(float));
    });
  });
  return bytes;
}

template <typename Device>
class Depthwise final : public Operator {
 public:
  Depthwise(const ConvolutionSettings& settings, const ConvolutionGeometry& geometry)
      : settings_(settings), g_(geometry) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    SwitchPacked(args.out_data[0].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      Ending<T> ending;
      if (!settings_.no_bias) ending.bias = args.in_data[P::kBias];
      if (settings_.with_sum) ending.sum = args.in_data.back().template dptr<T>();
      ending.low = static_cast<float>(settings_.low());
      ending.high = static_cast<float>(settings_.high());
      SwitchWindow(g_, [&](auto kernel, auto stride) {
        const Device device{args.ctx.run_ctx};
        MXTRAIN_ASSERT(TakesPacks(args.in_data[P::kData].data) &&
                       TakesPacks(args.out_data[0].data) && TakesPacks(ending.sum));
        Run(device, Outputs<T, kernel(), stride()>(
                        Images(g_), args.in_data[P::kData].dptr<T>(),
                        Spread<T>(device, args.in_data[P::kWeight], args.ctx.workspace, false),
                        ending, args.out_data[0].dptr<T>(), args.req[0]));
      });
    });
  }

  void Backward(const BackwardArgs& args) override {
    SwitchPacked(args.out_grad[0].type, [&](auto tag) {
      using T = typename decltype(tag)::type;
      MXTRAIN_ASSERT(TakesPacks(args.out_grad[0].data) && TakesPacks(args.in_data[P::kData].data) &&
                     TakesPacks(args.in_grad[P::kData].data));
      SwitchWindow(g_, [&](auto kernel, auto stride) {
        if (args.req[P::kData] != OpReqType::kNullOp) DataGradient<T, kernel(), stride()>(args);
        if (args.req[P::kWeight] != OpReqType::kNullOp) WeightGradient<T, kernel(), stride()>(args);
      });
      if (settings_.no_bias) return;
      const TBlob& head = args.out_grad[0];
      weighted::SumToBias<T>(Device{args.ctx.run_ctx}, head,
                             ChannelView(head.shape, 1, head.layout), args.in_grad[P::kBias],
                             args.req[P::kBias], args.ctx.workspace);
    });
  }

 private:
  template <typename Work>
  static void Run(const Device& device, const Work& work) {
    Launch(device, work.tasks(), work);
  }
  // The weight as [taps, channels], at the start of the workspace.
  template <typename T>
  const float* Spread(const Device& device, const TBlob& weight, const TBlob& workspace,
                      bool turned) const {
    float* const to = workspace.dptr<float>();
    MXTRAIN_ASSERT(reinterpret_cast<uintptr_t>(to) % alignof(ChannelPack<float, kPackOf<T>>) == 0);
    const int64_t taps = g_.window();
    Launch(device, g_.in_channels * taps,
           SpreadWeight<T>{weight.dptr<T>(), taps, FastDivider(g_.in_channels), turned, to});
    return to;
  }

  template <typename T, int kKernel, int kStride>
  void DataGradient(const BackwardArgs& args) const {
    const Device device{args.ctx.run_ctx};
    const T* const head = args.out_grad[0].dptr<T>();
    T* const to = args.in_grad[P::kData].dptr<T>();
    const float* const weight =
        Spread<T>(device, args.in_data[P::kWeight], args.ctx.workspace, kStride == 1);
    const Images images(g_);
    if constexpr (kStride == 1) {
      Run(device, Outputs<T, kKernel, 1>(images.Turned(kKernel), head, weight, Ending<T>(), to,
                                         args.req[P::kData]));
    } else {
      Run(device, DataGradients<T, kKernel, kStride>(images, head, weight, to, args.req[P::kData]));
    }
  }

  template <typename T, int kKernel, int kStride>
  void WeightGradient(const BackwardArgs& args) const {
    const Device device{args.ctx.run_ctx};
    const TBlob& workspace = args.ctx.workspace;
    float* const parts = workspace.dptr<float>();
    const WeightPart<T, kKernel, kStride> part(Images(g_), MembersOf<Device>(),
                                               args.out_grad[0].dptr<T>(),
                                               args.in_data[P::kData].dptr<T>(), parts);
    MXTRAIN_ASSERT(part.elements() * part.slices.count * static_cast<int64_t>(sizeof(float)) <=
                   workspace.Size());
    ForRows(device, part.tasks(), kLongRow, part);
    ForRows(
        device, part.elements(), part.slices.count,
        JoinParts<float, PutWeight<T>>{
            part.slices.count, parts, {args.in_grad[P::kWeight].dptr<T>(), args.req[P::kWeight]}});
  }

  ConvolutionSettings settings_;
  ConvolutionGeometry g_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  const DType type = request.in[P::kData].type;
  if (settings.axes() != 2) return Refusal{"images only"};
  if (!IsFloating(type) || type == DType::kFloat64)
    return Refusal{format("no packs of {}", NameOf(type))};
  if (const std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  const ConvolutionGeometry g(settings, request.in[P::kData].shape, request.out[0].shape);
  if (g.groups != g.in_channels || g.in_channels != g.out_channels)
    return Refusal{"a group for every channel only"};
  const bool known = g.kernel[0] == g.kernel[1] && g.stride[0] == g.stride[1] &&
                     (g.kernel[0] == 3 || g.kernel[0] == 5 || g.kernel[0] == 7) &&
                     g.stride[0] <= 2 && g.dilate[0] == 1 && g.dilate[1] == 1;
  if (!known) return Refusal{"windows of 3, 5 or 7 pixels, strides of 1 and 2 only"};
  if (g.pad[0] >= g.kernel[0] || g.pad[1] >= g.kernel[1])
    return Refusal{"less padding than the window only"};
  if (g.in_channels % (16 / SizeOf(type)) != 0) return Refusal{"whole packs of channels only"};
  if (request.in[P::kData].shape.Size() == 0 || request.out[0].shape.Size() == 0)
    return Refusal{"not empty"};
  const Layout layout = BestLayout(request, LibraryMathOf(request), backend);
  if (layout.plain()) return Refusal{"channels last only"};
  Plan plan = PlainPlan(base, request);
  LieAs(layout, base, request, &plan);
  plan.forward_workspace = WeightBytes(g);
  const weighted::Wanted wanted(request);
  plan.backward_workspace =
      std::max({wanted.data ? WeightBytes(g) : 0, wanted.weight ? PartBytes<Device>(type, g) : 0,
                BiasWorkspace(settings, request, layout)});
  plan.make = [settings, g] { return std::make_unique<Depthwise<Device>>(settings, g); };
  return plan;
}

}  // namespace mxtrain::convolution::depthwise

MXTRAIN_KERNELS(depthwise, Device, registry) {
  if constexpr (Device::kType == mxtrain::DeviceType::kGPU) {
    constexpr int kRank = 50;  // before libraries
    for (const char* op : mxtrain::ConvolutionProperty::kOperators)
      registry.AddKernel({op, Device::kType, "depthwise", kRank,
                          mxtrain::convolution::depthwise::MakePlan<Device>});
  }
}
