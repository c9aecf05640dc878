// SPDX-License-Identifier: Apache-2.0
// Convolution in groups of few channels, with as many filters, by the loops of grouped_kernels.h:
// images in blocks of channels ("aBcd16b") or channels last, weights in blocks of filters
// ("Acdb16a"). oneDNN 2 has depthwise gradients for windows of three columns alone, and for groups
// of less than a vector's channels it uses narrower vectors, in another layout than the
// neighbours'.
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
#include "mxtrain/operators/convolution/grouped_kernels.h"
#include "mxtrain/operators/convolution/weighted_types.h"

namespace mxtrain {
namespace {

using P = ConvolutionProperty;
using grouped::Results;

// The gradient of the weights is summed over groups of images first, at most this many: enough for
// every thread, whatever their number.
constexpr int64_t kMostParts = 32;

// Numbers of the arrays that a plan reserves.
struct Sizes {
  int64_t blocks, parts;  // of channels; of the images
  int64_t weights;        // with the channels that fill the last block
  int64_t channels;       // likewise
  int64_t part;           // sums of one part: of the weights, then of the bias

  explicit Sizes(const ConvolutionGeometry& g)
      : blocks(CeilDivide(g.in_channels, grouped::Width())),
        parts(std::min(g.batch, kMostParts)),
        weights(blocks * g.window() * g.group_in() * grouped::Width()),
        channels(blocks * grouped::Width()),
        part(weights + channels) {}
};

// Narrow weights are converted to float in the workspace.
template <typename T>
class GroupedConvolution final : public Operator {
 public:
  GroupedConvolution(const ConvolutionGeometry& geometry, const ConvolutionSettings& settings,
                     bool channels_last)
      : g_(geometry), n_(geometry), settings_(settings), channels_last_(channels_last) {
    for (int axis = 0; axis < 2; ++axis) {
      const grouped::Axis a{g_.in[axis],     g_.out[axis],    g_.kernel[axis],
                            g_.stride[axis], g_.dilate[axis], g_.pad[axis]};
      forward_[axis] = grouped::ForwardResults(a);
      backward_[axis] = grouped::GradientResults(a);
    }
  }

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    if (settings_.with_sum)
      CopyBlob(args.ctx.run_ctx, OpReqType::kWriteTo, args.in_data.back(), args.out_data[0]);
    const Images source = ImagesOf(args.in_data[P::kData], g_.in),
                 out = ImagesOf(args.out_data[0], g_.out);
    auto* workspace = static_cast<float*>(args.ctx.workspace.data);
    const float* weight = Widened(args.in_data[P::kWeight], workspace);
    const float* bias =
        settings_.no_bias ? nullptr : PadBias(args.in_data[P::kBias], workspace + n_.weights);
    grouped::Line<T> line = NewLine(source, args.req[0] == OpReqType::kAddTo || settings_.with_sum);
    line.low = settings_.low(), line.high = settings_.high();
    line.out_step = out.steps.cell;
    ForEachRow(g_.out[0], g_.out[1], [&, line](int64_t image, int64_t block, int64_t y) mutable {
      line.source = source.At(image, block);
      line.weight = weight + block * (n_.weights / n_.blocks);
      line.bias = bias ? bias + block * grouped::Width() : nullptr;
      line.out = out.At(image, block) + y * out.steps.row;
      kernels_.convolve(line, forward_[0], y, forward_[1]);
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
    T* data;
    int64_t image, block;  // elements from one to the next
    grouped::Steps steps;
    T* At(int64_t n, int64_t b) const { return data + n * image + b * block; }
  };

  Images ImagesOf(const TBlob& blob, const int64_t* sizes) const {
    const int64_t width = grouped::Width(), blocks = n_.blocks, cells = sizes[0] * sizes[1];
    auto* data = blob.dptr<T>();
    if (channels_last_)
      return {data, cells * g_.in_channels, width, {sizes[1] * g_.in_channels, g_.in_channels}};
    return {data, blocks * cells * width, cells * width, {sizes[1] * width, width}};
  }

  grouped::Line<T> NewLine(const Images& source, bool accumulate) const {
    grouped::Line<T> line{};
    line.source_steps = source.steps;
    line.kernel_width = g_.kernel[1];
    line.group = g_.group_in();
    line.accumulate = accumulate;
    line.low = Epilogue().low(), line.high = Epilogue().high();
    return line;
  }

  // body(image, block, row) for each of `rows`, divided among the threads.
  template <typename Body>
  void ForEachRow(int64_t rows, int64_t columns, const Body& body) const {
    const int64_t blocks = n_.blocks,
                  products = columns * grouped::Width() * g_.window() * g_.group_in();
    ParallelFor(g_.batch * blocks * rows, std::max<int64_t>(kParallelGrain / products, 1),
                [&](int64_t begin, int64_t end) {
                  Body mine = body;
                  for (int64_t at = begin; at < end; ++at)
                    mine(at / (rows * blocks), at / rows % blocks, at % rows);
                });
  }

  // The bias, with zeros for the channels that fill the last block: padding stays zero.
  const float* PadBias(const TBlob& blob, float* padded) const {
    const auto* bias = blob.dptr<float>();
    if (n_.channels == g_.in_channels) return bias;
    std::fill(std::copy_n(bias, g_.in_channels, padded), padded + n_.channels, 0.0f);
    return padded;
  }

  const float* Widened(const TBlob& weight, float* wide) const {
    if constexpr (std::is_same_v<T, float>) return weight.dptr<float>();
    const auto* narrow = weight.dptr<T>();
    for (int64_t i = 0; i < n_.weights; ++i) wide[i] = static_cast<float>(narrow[i]);
    return wide;
  }

  // The weights with filters and channels of each group exchanged.
  const float* Transposed(const BackwardArgs& args) const {
    const int64_t group = g_.group_in(), width = grouped::Width(), cell = group * width;
    auto* packed = static_cast<float*>(args.ctx.workspace.data);
    if (group == 1) return Widened(args.in_data[P::kWeight], packed);
    const auto* weight = args.in_data[P::kWeight].dptr<T>();
    ParallelFor(n_.weights / cell, std::max<int64_t>(kParallelGrain / cell, 1),
                [=](int64_t begin, int64_t end) {
                  for (int64_t at = begin * cell; at < end * cell; at += cell) {
                    for (int64_t k = 0; k < group; ++k) {
                      for (int64_t lane = 0; lane < width; ++lane)
                        packed[at + k * width + lane] = static_cast<float>(
                            weight[at + lane % group * width + lane / group * group + k]);
                    }
                  }
                });
    return packed;
  }

  void DataGradient(const BackwardArgs& args) const {
    const Images source = ImagesOf(args.out_grad[0], g_.out),
                 out = ImagesOf(args.in_grad[P::kData], g_.in);
    const float* weight = Transposed(args);
    grouped::Line<T> line = NewLine(source, args.req[P::kData] == OpReqType::kAddTo);
    ForEachRow(g_.in[0], g_.in[1], [&, line](int64_t image, int64_t block, int64_t y) mutable {
      line.source = source.At(image, block);
      line.weight = weight + block * (n_.weights / n_.blocks);
      const Results& rows = backward_[0][y % g_.stride[0]];
      for (const Results& columns : backward_[1]) {
        line.out = out.At(image, block) + y * out.steps.row + columns.first * out.steps.cell;
        line.out_step = columns.step * out.steps.cell;
        kernels_.convolve(line, rows, y / g_.stride[0], columns);
      }
    });
  }

  // Sums of each part of the images, then of the parts in their order.
  void WeightGradient(const BackwardArgs& args, bool weight, bool bias) const {
    const Images image = ImagesOf(args.in_data[P::kData], g_.in),
                 head = ImagesOf(args.out_grad[0], g_.out);
    const int64_t width = grouped::Width(), blocks = n_.blocks, parts = n_.parts,
                  window = n_.weights / blocks, cells = n_.part / blocks;
    auto* sums = static_cast<float*>(args.ctx.workspace.data);
    ParallelFor(parts * blocks, 1, [&](int64_t begin, int64_t end) {
      for (int64_t at = begin; at < end; ++at) {
        const int64_t part = at / blocks, block = at % blocks;
        float* to = sums + at * cells;
        std::fill_n(to, cells, 0.0f);
        for (int64_t n = g_.batch * part / parts; n < g_.batch * (part + 1) / parts; ++n) {
          if (weight) {
            kernels_.add_weights({image.At(n, block), head.At(n, block), image.steps, head.steps,
                                  g_.kernel[1], g_.group_in(), to},
                                 forward_[0], forward_[1]);
          }
          if (bias)
            kernels_.add_cells(head.At(n, block), head.steps, g_.out[0], g_.out[1], to + window);
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
      ParallelFor(blocks * window, kParallelGrain / parts + 1, [&](int64_t begin, int64_t end) {
        for (int64_t at = begin; at < end; ++at)
          Assign(args.req[P::kWeight], to, at, total(at / window, at % window));
      });
    }
    if (bias) {
      auto* to = args.in_grad[P::kBias].dptr<float>();
      for (int64_t channel = 0; channel < g_.in_channels; ++channel)
        Assign(args.req[P::kBias], to, channel, total(channel / width, window + channel % width));
    }
  }

  const ConvolutionGeometry g_;
  const Sizes n_;
  const ConvolutionSettings settings_;
  const bool channels_last_;
  Results forward_[2];
  std::vector<Results> backward_[2];
  const grouped::Kernels<T>& kernels_ = grouped::KernelsOf<T>();
};

std::string WhyNot(const ConvolutionSettings& settings, const ConvolutionGeometry& g,
                   const PlanRequest& request) {
  for (const TensorSpec& spec : request.in) {
    if (spec.shape.Size() == 0) return "empty array";
  }
  const DType type = request.in[P::kData].type;
  if (type != DType::kFloat32 && type != DType::kBfloat16) return "float32 and bfloat16 only";
  if (!settings.no_bias && request.in[P::kBias].type != DType::kFloat32) return "float32 bias only";
  if (request.out[0].shape.Size() == 0) return "empty array";
  if (settings.axes() != 2) return "two spatial axes only";
  const int64_t group = g.group_in();
  if (g.groups == 1) return "more than one group only";
  if (group != g.group_out()) return "as many filters as channels only";
  if (group != 1 && group != 2 && group != 4 && group != grouped::kMostChannels)
    return "groups of 1, 2, 4 or 8 channels only";
  if (grouped::Width() % group != 0) return "groups of more channels than a vector";
  if (g.in_channels * 2 < grouped::Width()) return "too few channels for a vector";
  return WhyNotEpilogue(settings, request);
}

Expected<Plan, Refusal> PlanGrouped(const OperatorProperty& base, const PlanRequest& request,
                                    Backend& backend) {
  const ConvolutionSettings settings =
      static_cast<const ConvolutionProperty&>(base).SettingsFor(request.in[P::kData].shape);
  const ConvolutionGeometry geometry(settings, request.in[P::kData].shape, request.out[0].shape);
  if (std::string why = WhyNot(settings, geometry, request); !why.empty()) return Refusal{why};

  const int64_t width = grouped::Width();
  const std::optional<Layout>& offered = request.in_layout[P::kData];
  const bool channels_last = offered && ChannelsLast(*offered) && geometry.in_channels % width == 0;
  const auto blocked = [&](std::vector<int> order, int axis) {
    return backend.Intern(std::make_unique<BlockedLayout>(
        std::move(order), std::vector{BlockedLayout::Block{axis, width}}));
  };
  Plan plan = PlainPlan(base, request);
  const Layout images = channels_last ? *offered : blocked({0, 1, 2, 3}, 1);
  plan.in[P::kData] = AsOffered(request.in[P::kData].shape, images, offered);
  plan.out[0] = Canonical(request.out[0].shape, images);
  plan.in[P::kWeight] = blocked({0, 2, 3, 1}, 0);
  if (settings.with_sum) plan.in.back() = plan.out[0];
  const bool narrow = request.in[P::kData].type != DType::kFloat32;
  const Sizes n(geometry);
  constexpr int64_t kFloat = sizeof(float);
  if (narrow || (!settings.no_bias && n.channels != geometry.in_channels))
    plan.forward_workspace = n.part * kFloat;
  const weighted::Wanted wanted(request);
  if (request.needs_backward) {
    if (wanted.weights()) plan.backward_workspace = n.parts * n.part * kFloat;
    if (wanted.data && (narrow || geometry.group_in() > 1))
      plan.backward_workspace = std::max(plan.backward_workspace, n.weights * kFloat);
    std::vector<bool> reads(request.in.size(), false);
    reads[P::kData] = wanted.weight;
    reads[P::kWeight] = wanted.data;
    plan.backward_reads = BackwardReads{{true}, reads, {false}};
    if (narrow && wanted.weight) {
      plan.grad_layout.assign(request.in.size(), std::nullopt);
      plan.grad_layout[P::kWeight] = {DType::kFloat32, plan.in[P::kWeight]};
    }
  }
  plan.cost += weighted::ArithmeticCost(base, request);
  plan.make = [geometry, settings, channels_last, narrow]() -> std::unique_ptr<Operator> {
    if (narrow)
      return std::make_unique<GroupedConvolution<bfloat16>>(geometry, settings, channels_last);
    return std::make_unique<GroupedConvolution<float>>(geometry, settings, channels_last);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(convolution_grouped, registry) {
  for (const char* op : mxtrain::ConvolutionProperty::kOperators) {
    registry.AddKernel({op, mxtrain::DeviceType::kCPU, "grouped", 60, mxtrain::PlanGrouped});
  }
}
