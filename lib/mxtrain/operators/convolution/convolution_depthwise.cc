// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, one filter per channel, by the loops of depthwise_kernels.h: images in
// blocks of channels ("aBcd16b") or channels last, weights in blocks of channels ("Abcd16a").
// oneDNN 2 has such loops for windows of three columns alone, and computes the gradients of others
// one by one.
//
// An element of a result is summed by one thread in one order: the same bits with any number of
// threads.
#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/identity.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/convolution/convolution.h"
#include "mxtrain/operators/convolution/depthwise_kernels.h"

namespace mxtrain {
namespace {

using P = ConvolutionProperty;
using depthwise::Results;

// The gradient of the weights is summed over groups of images first, at most this many: enough for
// every thread, whatever their number.
constexpr int64_t kMostParts = 32;

class DepthwiseConvolution final : public Operator {
 public:
  DepthwiseConvolution(const ConvolutionGeometry& geometry, const ConvolutionSettings& settings,
                       bool channels_last)
      : g_(geometry), settings_(settings), channels_last_(channels_last) {
    for (int axis = 0; axis < 2; ++axis) {
      const depthwise::Axis a{g_.in[axis],     g_.out[axis],    g_.kernel[axis],
                              g_.stride[axis], g_.dilate[axis], g_.pad[axis]};
      forward_[axis] = depthwise::ForwardResults(a);
      backward_[axis] = depthwise::GradientResults(a);
    }
  }

  static int64_t Blocks(const ConvolutionGeometry& g) {
    return CeilDivide(g.in_channels, depthwise::Width());
  }
  static int64_t Parts(const ConvolutionGeometry& g) { return std::min(g.batch, kMostParts); }
  // Floats of the sums of one part: of a window, and of the bias after it.
  static int64_t PartFloats(const ConvolutionGeometry& g) {
    return Blocks(g) * (g.window() + 1) * depthwise::Width();
  }
  static int64_t BiasFloats(const ConvolutionGeometry& g) { return Blocks(g) * depthwise::Width(); }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    if (settings_.with_sum)
      CopyBlob(args.ctx.run_ctx, OpReqType::kWriteTo, args.in_data.back(), args.out_data[0]);
    const Images source = ImagesOf(args.in_data[P::kData], g_.in),
                 out = ImagesOf(args.out_data[0], g_.out);
    const auto* weight = args.in_data[P::kWeight].dptr<float>();
    const float* bias = settings_.no_bias ? nullptr : PadBias(args);
    depthwise::Line line = LineOf(source, args.req[0] == OpReqType::kAddTo || settings_.with_sum);
    line.low = settings_.low(), line.high = settings_.high();
    line.out_step = out.steps.cell;
    ForEachRow(g_.out[0], g_.out[1], [&, line](int64_t image, int64_t block, int64_t y) mutable {
      line.source = source.At(image, block);
      line.weight = weight + block * g_.window() * depthwise::Width();
      line.bias = bias ? bias + block * depthwise::Width() : nullptr;
      line.out = out.At(image, block) + y * out.steps.row;
      depthwise::ConvolveLine(line, forward_[0], y, forward_[1]);
    });
  }

  void Backward(const BackwardArgs& args) override {
    const auto wants = [&](size_t i) {
      return i < args.req.size() && args.req[i] != OpReqType::kNullOp;
    };
    if (wants(P::kWeight) || wants(P::kBias))
      WeightGradient(args, wants(P::kWeight), wants(P::kBias));
    if (wants(P::kData)) DataGradient(args);
  }

 private:
  // The blocks of channels of an array of images.
  struct Images {
    float* data;
    int64_t image, block;  // floats from one to the next
    depthwise::Steps steps;
    float* At(int64_t n, int64_t b) const { return data + n * image + b * block; }
  };

  Images ImagesOf(const TBlob& blob, const int64_t* sizes) const {
    const int64_t width = depthwise::Width(), blocks = Blocks(g_), cells = sizes[0] * sizes[1];
    auto* data = blob.dptr<float>();
    if (channels_last_)
      return {data, cells * g_.in_channels, width, {sizes[1] * g_.in_channels, g_.in_channels}};
    return {data, blocks * cells * width, cells * width, {sizes[1] * width, width}};
  }

  depthwise::Line LineOf(const Images& source, bool accumulate) const {
    depthwise::Line line{};
    line.source_steps = source.steps;
    line.kernel_width = g_.kernel[1];
    line.accumulate = accumulate;
    line.low = Epilogue().low(), line.high = Epilogue().high();
    return line;
  }

  // body(image, block, row) for each of `rows`, divided among the threads.
  template <typename Body>
  void ForEachRow(int64_t rows, int64_t columns, const Body& body) const {
    const int64_t blocks = Blocks(g_), products = columns * depthwise::Width() * g_.window();
    ParallelFor(g_.batch * blocks * rows, std::max<int64_t>(kParallelGrain / products, 1),
                [&](int64_t begin, int64_t end) {
                  Body mine = body;
                  for (int64_t at = begin; at < end; ++at)
                    mine(at / (rows * blocks), at / rows % blocks, at % rows);
                });
  }

  // The bias, with zeros for the channels that fill the last block: padding stays zero.
  const float* PadBias(const ForwardArgs& args) const {
    const auto* bias = args.in_data[P::kBias].dptr<float>();
    if (BiasFloats(g_) == g_.in_channels) return bias;
    auto* padded = static_cast<float*>(args.ctx.workspace.data);
    std::fill(std::copy_n(bias, g_.in_channels, padded), padded + BiasFloats(g_), 0.0f);
    return padded;
  }

  void DataGradient(const BackwardArgs& args) const {
    const Images source = ImagesOf(args.out_grad[0], g_.out),
                 out = ImagesOf(args.in_grad[P::kData], g_.in);
    const auto* weight = args.in_data[P::kWeight].dptr<float>();
    depthwise::Line line = LineOf(source, args.req[P::kData] == OpReqType::kAddTo);
    ForEachRow(g_.in[0], g_.in[1], [&, line](int64_t image, int64_t block, int64_t y) mutable {
      line.source = source.At(image, block);
      line.weight = weight + block * g_.window() * depthwise::Width();
      const Results& rows = backward_[0][y % g_.stride[0]];
      for (const Results& columns : backward_[1]) {
        line.out = out.At(image, block) + y * out.steps.row + columns.first * out.steps.cell;
        line.out_step = columns.step * out.steps.cell;
        depthwise::ConvolveLine(line, rows, y / g_.stride[0], columns);
      }
    });
  }

  // Sums of each part of the images, then of the parts in their order.
  void WeightGradient(const BackwardArgs& args, bool weight, bool bias) const {
    const Images image = ImagesOf(args.in_data[P::kData], g_.in),
                 head = ImagesOf(args.out_grad[0], g_.out);
    const int64_t width = depthwise::Width(), blocks = Blocks(g_), parts = Parts(g_),
                  cells = (g_.window() + 1) * width;
    auto* sums = static_cast<float*>(args.ctx.workspace.data);
    ParallelFor(parts * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t part = at / blocks, block = at % blocks;
        float* to = sums + at * cells;
        std::fill_n(to, cells, 0.0f);
        for (int64_t n = g_.batch * part / parts; n < g_.batch * (part + 1) / parts; ++n) {
          if (weight) {
            depthwise::AddWeightGradient(
                {image.At(n, block), head.At(n, block), image.steps, head.steps, g_.kernel[1], to},
                forward_[0], forward_[1]);
          }
          if (bias)
            depthwise::AddCells(head.At(n, block), head.steps, g_.out[0], g_.out[1],
                                to + g_.window() * width);
        }
      }
    });
    const auto total = [&](int64_t block, int64_t cell) {
      float sum = 0;
      for (int64_t part = 0; part < parts; ++part)
        sum += sums[(part * blocks + block) * cells + cell];
      return sum;
    };
    if (weight) {
      auto* to = args.in_grad[P::kWeight].dptr<float>();
      const int64_t window = g_.window() * width;
      ParallelFor(blocks * window, kParallelGrain / parts + 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at)
          Assign(args.req[P::kWeight], to, at, total(at / window, at % window));
      });
    }
    if (bias) {
      auto* to = args.in_grad[P::kBias].dptr<float>();
      for (int64_t channel = 0; channel < g_.in_channels; ++channel)
        Assign(args.req[P::kBias], to, channel,
               total(channel / width, g_.window() * width + channel % width));
    }
  }

  const ConvolutionGeometry g_;
  const ConvolutionSettings settings_;
  const bool channels_last_;
  Results forward_[2];
  std::vector<Results> backward_[2];
};

std::string WhyNot(const ConvolutionSettings& settings, const ConvolutionGeometry& g,
                   const PlanRequest& request) {
  for (const TensorSpec& spec : request.in) {
    if (spec.type != DType::kFloat32) return "float32 only";
    if (spec.shape.Size() == 0) return "empty array";
  }
  if (request.out[0].shape.Size() == 0) return "empty array";
  if (settings.axes() != 2) return "two spatial axes only";
  if (g.groups != g.in_channels || g.groups != g.out_channels) return "one filter per channel only";
  if (g.in_channels * 2 < depthwise::Width()) return "too few channels for a vector";
  return WhyNotEpilogue(settings, request);
}

Expected<Plan, Refusal> PlanDepthwise(const OperatorProperty& base, const PlanRequest& request,
                                      Backend& backend) {
  const ConvolutionSettings& settings = static_cast<const ConvolutionProperty&>(base).settings();
  const ConvolutionGeometry geometry(settings, request.in[P::kData].shape, request.out[0].shape);
  if (std::string why = WhyNot(settings, geometry, request); !why.empty()) return Refusal{why};

  const int64_t width = depthwise::Width();
  const std::optional<Layout>& offered = request.in_layout[P::kData];
  const bool channels_last = offered && ChannelsLast(*offered) && geometry.in_channels % width == 0;
  const auto blocked = [&](int axis) {
    return backend.Intern(std::make_unique<BlockedLayout>(
        std::vector<int>{0, 1, 2, 3}, std::vector{BlockedLayout::Block{axis, width}}));
  };
  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = plan.out[0] = channels_last ? *offered : blocked(1);
  plan.in[P::kWeight] = blocked(0);
  if (settings.with_sum) plan.in.back() = plan.out[0];
  constexpr int64_t kFloat = sizeof(float);
  using Kernel = DepthwiseConvolution;
  if (!settings.no_bias && Kernel::BiasFloats(geometry) != geometry.in_channels)
    plan.forward_workspace = Kernel::BiasFloats(geometry) * kFloat;
  const auto wants = [&](size_t i) {
    return request.needs_backward && i < request.grad_req.size() &&
           request.grad_req[i] != OpReqType::kNullOp;
  };
  if (request.needs_backward) {
    if (wants(P::kWeight) || wants(P::kBias))
      plan.backward_workspace = Kernel::Parts(geometry) * Kernel::PartFloats(geometry) * kFloat;
    std::vector<bool> reads(request.in.size(), false);
    reads[P::kData] = wants(P::kWeight);
    reads[P::kWeight] = wants(P::kData);
    plan.backward_reads = BackwardReads{{true}, reads, {false}};
  }
  plan.make = [geometry, settings, channels_last] {
    return std::make_unique<DepthwiseConvolution>(geometry, settings, channels_last);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_depthwise, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddKernel({op, mxtrain::DeviceType::kCPU, "depthwise", 60, mxtrain::PlanDepthwise});
  }
}
