// SPDX-License-Identifier: Apache-2.0
// Image-blocked convolution: images in blocks of neighbours, [N / b, C, H, W, b] ("Abcd16a"), by
// the loops of image_blocked_kernels.h. For few channels, where oneDNN's blocks of channels would
// be half empty. Canonical layout of the weight: plain.
//
// An element of a gradient is summed by one thread in one order: the same bits with any number of
// threads.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/image_blocked_kernels.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {
namespace {

using P = ConvolutionProperty;

class ImageBlockedConvolution final : public Operator {
 public:
  ImageBlockedConvolution(const ConvolutionGeometry& geometry, const ConvolutionSettings& settings)
      : g_(geometry), settings_(settings) {}

  // Floats of the packed filters, for the forward pass or for the gradient of the data.
  static int64_t PackedFloats(const ConvolutionGeometry& g, bool forward) {
    const int64_t filters = forward ? g.out_channels : g.in_channels,
                  channels = forward ? g.in_channels : g.out_channels;
    const int64_t tile = image_blocked::TileOf(filters);
    return RoundUp(filters, tile) * channels * g.kernel[0] * g.kernel[1];
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    image_blocked::Correlation c = Describe(args.in_data[P::kData], args.out_data[0], args.req[0]);
    if (!settings_.no_bias) c.bias = args.in_data[P::kBias].dptr<float>();
    if (settings_.with_sum)
      CopyBlob(args.ctx.run_ctx, OpReqType::kWriteTo, args.in_data.back(), args.out_data[0]);
    c.accumulate |= settings_.with_sum;
    c.low = settings_.low(), c.high = settings_.high();
    const float* weight = args.in_data[P::kWeight].dptr<float>();
    const int64_t window = g_.kernel[0] * g_.kernel[1];
    for (int axis = 0; axis < 2; ++axis) c.shift[axis] = g_.pad[axis];
    Pack(&c, args.ctx, [=, this](int64_t filter, int64_t channel, int64_t cell) {
      return weight[(filter * g_.in_channels + channel) * window + cell];
    });
    Run(c);
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[P::kWeight] != OpReqType::kNullOp)
      WeightGradient(args.in_data[P::kData], args.out_grad[0], args.req[P::kWeight],
                     args.in_grad[P::kWeight]);
    if (args.req.size() > P::kBias && args.req[P::kBias] != OpReqType::kNullOp)
      BiasGradient(args.out_grad[0], args.req[P::kBias], args.in_grad[P::kBias]);
    if (args.req[P::kData] == OpReqType::kNullOp) return;
    image_blocked::Correlation c =
        Describe(args.out_grad[0], args.in_grad[P::kData], args.req[P::kData]);
    const float* weight = args.in_data[P::kWeight].dptr<float>();
    const int64_t window = g_.kernel[0] * g_.kernel[1];
    for (int axis = 0; axis < 2; ++axis) c.shift[axis] = g_.kernel[axis] - 1 - g_.pad[axis];
    Pack(&c, args.ctx, [=, this](int64_t filter, int64_t channel, int64_t cell) {
      return weight[(channel * g_.in_channels + filter) * window + window - 1 - cell];
    });
    Run(c);
  }

 private:
  int64_t Blocks() const { return g_.batch / image_blocked::Width(); }

  image_blocked::Correlation Describe(const TBlob& source, const TBlob& out, OpReqType req) const {
    image_blocked::Correlation c{};
    c.source = source.dptr<float>();
    c.out = out.dptr<float>();
    c.channels = source.shape[1], c.height = source.shape[2], c.width = source.shape[3];
    c.filters = out.shape[1], c.out_height = out.shape[2], c.out_width = out.shape[3];
    c.tile = image_blocked::TileOf(c.filters);
    std::copy_n(g_.kernel, 2, c.kernel);
    c.accumulate = req == OpReqType::kAddTo;
    c.low = Epilogue().low(), c.high = Epilogue().high();
    return c;
  }

  // Writes weight_at(filter, channel, cell of the window) into the workspace, in the order of the
  // loops.
  template <typename F>
  void Pack(image_blocked::Correlation* c, const OpContext& ctx, F weight_at) const {
    auto* packed = static_cast<float*>(ctx.workspace.data);
    const int64_t window = c->kernel[0] * c->kernel[1], tile = c->tile, channels = c->channels,
                  filters = c->filters;
    ParallelFor(CeilDivide(filters, tile) * channels,
                std::max<int64_t>(kParallelGrain / (window * tile), 1),
                [=](int64_t begin, int64_t end) {
                  for (int64_t at = begin; at < end; ++at) {
                    const int64_t first = at / channels * tile, channel = at % channels;
                    for (int64_t cell = 0; cell < window; ++cell) {
                      float* to = packed + (at * window + cell) * tile;
                      for (int64_t f = 0; f < tile; ++f)
                        to[f] = first + f < filters ? weight_at(first + f, channel, cell) : 0.0f;
                    }
                  }
                });
    c->packed = packed;
  }

  // Tiles outermost, then images, then rows: a tile's filters stay in the first-level cache.
  void Run(const image_blocked::Correlation& c) const {
    const int64_t blocks = Blocks(), groups = CeilDivide(blocks, image_blocked::kBlocksAtATime);
    ParallelFor(
        CeilDivide(c.filters, c.tile) * groups * c.out_height, 1, [&](int64_t begin, int64_t end) {
          for (int64_t at = begin; at < end; ++at) {
            const int64_t block = at / c.out_height % groups * image_blocked::kBlocksAtATime;
            image_blocked::CorrelateRow(c, at / (c.out_height * groups), at % c.out_height, block,
                                        std::min(image_blocked::kBlocksAtATime, blocks - block));
          }
        });
  }

  void WeightGradient(const TBlob& data, const TBlob& head, OpReqType req,
                      const TBlob& gradient) const {
    image_blocked::WeightGradient w{data.dptr<float>(),
                                    head.dptr<float>(),
                                    Blocks(),
                                    g_.in_channels,
                                    g_.out_channels,
                                    g_.in[0],
                                    g_.in[1],
                                    g_.out[0],
                                    g_.out[1],
                                    {},
                                    {}};
    std::copy_n(g_.kernel, 2, w.kernel);
    std::copy_n(g_.pad, 2, w.pad);
    auto* to = gradient.dptr<float>();
    const int64_t window = w.kernel[0] * w.kernel[1], tile = image_blocked::GradientTile(),
                  tiles = g_.out_channels / tile;
    ParallelFor(
        (tiles + g_.out_channels % tile) * g_.in_channels, 1, [&](int64_t begin, int64_t end) {
          float sums[8 * image_blocked::kMaxWindow];
          for (int64_t at = begin; at < end; ++at) {
            const int64_t group = at / g_.in_channels, channel = at % g_.in_channels;
            const int64_t filters = group < tiles ? tile : 1,
                          first = group < tiles ? group * tile : tiles * tile + group - tiles;
            image_blocked::GradientOf(w, channel, first, filters, sums);
            for (int64_t k = 0; k < filters * window; ++k) {
              Assign(req, to,
                     ((first + k / window) * g_.in_channels + channel) * window + k % window,
                     sums[k]);
            }
          }
        });
  }

  void BiasGradient(const TBlob& head, OpReqType req, const TBlob& gradient) const {
    const int64_t plane = g_.out[0] * g_.out[1] * image_blocked::Width();
    const auto* from = head.dptr<float>();
    auto* to = gradient.dptr<float>();
    ParallelFor(g_.out_channels, std::max<int64_t>(kParallelGrain / (plane * Blocks()), 1),
                [&](int64_t begin, int64_t end) {
                  for (int64_t o = begin; o < end; ++o) {
                    float sum = 0;
                    for (int64_t block = 0; block < Blocks(); ++block)
                      sum +=
                          image_blocked::SumOf(from + (block * g_.out_channels + o) * plane, plane);
                    Assign(req, to, o, sum);
                  }
                });
  }

  ConvolutionGeometry g_;
  ConvolutionSettings settings_;
};

// Channels as oneDNN computes them: whole blocks of eight, but it has kernels for three input
// channels.
int64_t WithPadding(int64_t channels) {
  return channels == 3 ? 3 : RoundUp(channels, 8);
}

// Whether oneDNN's blocks would be nearly full. It has no kernel for one or two input channels.
bool FillsBlocks(const ConvolutionGeometry& g) {
  constexpr double kWorthwhile = 1.3;
  if (g.in_channels < 3) return false;
  return static_cast<double>(WithPadding(g.in_channels) * WithPadding(g.out_channels)) <
         kWorthwhile * static_cast<double>(g.in_channels * g.out_channels);
}

// Data in blocks of channels are reordered for this kernel, and its result for the next one. That
// must cost less than the arithmetic on channels that only fill oneDNN's blocks.
bool RepaysReorder(const ConvolutionGeometry& g, const PlanRequest& request) {
  const std::optional<Layout>& data = request.in_layout[P::kData];
  if (!data || ChannelBlock(request.in[P::kData].shape, *data) <= 1) return true;
  const int64_t wasted =
      g.batch * g.out[0] * g.out[1] * g.window() *
      (WithPadding(g.in_channels) * WithPadding(g.out_channels) - g.in_channels * g.out_channels);
  const int64_t moved = request.in[P::kData].Bytes() + request.out[0].Bytes();
  return weighted::ArithmeticCost(static_cast<double>(wasted), request.threads) >
         2 * MoveCost(static_cast<double>(moved));
}

std::string WhyNot(const ConvolutionSettings& settings, const ConvolutionGeometry& g,
                   const PlanRequest& request) {
  for (const TensorSpec& spec : request.in) {
    if (spec.type != DType::kFloat32) return "float32 only";
    if (spec.shape.Size() == 0) return "empty array";
  }
  if (g.groups != 1) return "one group only";
  if (settings.stride != TShape{1, 1} || settings.dilate != TShape{1, 1})
    return "stride 1 and dilation 1 only";
  if (g.kernel[0] * g.kernel[1] > image_blocked::kMaxWindow)
    return format("windows of at most {} cells only", image_blocked::kMaxWindow);
  if (g.batch % image_blocked::Width() != 0)
    return format("batch sizes that are a multiple of {} only", image_blocked::Width());
  if (FillsBlocks(g)) return "enough channels for oneDNN's blocks";
  if (!RepaysReorder(g, request)) return "data in blocks of channels already";
  const std::optional<Layout>& weight = request.in_layout[P::kWeight];
  if (weight && !weight->plain()) return "plain weights only";
  return "";
}

Expected<Plan, Refusal> PlanImageBlocked(const OperatorProperty& base, const PlanRequest& request,
                                         Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  if (settings.axes() != 2) return Refusal{"two spatial axes only"};
  if (!settings.even_pad()) return Refusal{"equal padding on both sides only"};
  if (std::string why = WhyNotEpilogue(settings, request); !why.empty()) return Refusal{why};
  const ConvolutionGeometry geometry(settings, request.in[P::kData].shape, request.out[0].shape);
  if (std::string why = WhyNot(settings, geometry, request); !why.empty()) return Refusal{why};

  Plan plan = PlainPlan(base, request);
  const BlockedLayout::Block images{0, image_blocked::Width()};
  plan.in[P::kData] = plan.out[0] = backend.Intern(
      std::make_unique<BlockedLayout>(std::vector<int>{0, 1, 2, 3}, std::vector{images}));
  if (settings.with_sum) plan.in.back() = plan.out[0];
  const auto bytes = [&](bool forward) {
    return ImageBlockedConvolution::PackedFloats(geometry, forward) *
           static_cast<int64_t>(sizeof(float));
  };
  plan.forward_workspace = bytes(true);
  if (request.needs_backward && request.grad_req[P::kData] != OpReqType::kNullOp)
    plan.backward_workspace = bytes(false);
  plan.cost += weighted::ArithmeticCost(base, request);
  plan.make = [geometry, settings] {
    return std::make_unique<ImageBlockedConvolution>(geometry, settings);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_image_blocked, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddKernel(
        {op, mxtrain::DeviceType::kCPU, "image_blocked", 50, mxtrain::PlanImageBlocked});
  }
}
