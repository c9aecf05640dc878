// SPDX-License-Identifier: Apache-2.0
// BatchNorm and _BatchNormActivation of float32 and bfloat16 by vectors: two passes in forward
// (statistics; apply, with sum and activation), two in backward (sums; gradients of data and sum).
// For blocked channels, plain arrays, channels last, and blocked images.
//
// Backward recomputes from the data which values passed the activation, or its slope; only with a
// sum does forward save one bit per element.
#include <cmath>

#include "mxtrain/base/math.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/device/cpu/cache.h"
#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/batch_norm/batch_norm.h"
#include "mxtrain/operators/batch_norm/batch_norm_kernels.h"

namespace mxtrain {
namespace {

using namespace batch_norm;
using P = BatchNormProperty;
using Settings = BatchNormSettings;
enum Saved { kSavedMean, kSavedVariance, kSavedBits };

// Arrays larger than this many last-level caches are written around them: the next reader would not
// find them there.
constexpr int64_t kStreamCaches = 1;

// [outer, channels, inner] with contiguous elements of a channel.
Lines LinesOfChannels(int64_t outer, int64_t channels, int64_t inner) {
  Lines lines{.images = outer,
              .groups = channels,
              .image_stride = channels * inner,
              .group_stride = inner,
              .stride = 16};
  lines.broadcast = true;
  lines.cells = inner / lines.width;
  lines.rest = static_cast<int>(inner % lines.width);
  return lines;
}

// [rows, channels].
Lines LinesOfRows(int64_t rows, int64_t channels) {
  Lines lines{.images = 1,
              .groups = (channels + 15) / 16,
              .image_stride = rows * channels,
              .group_stride = 16,
              .stride = channels,
              .cells = rows};
  lines.last_width = static_cast<int>(channels - (lines.groups - 1) * lines.width);
  return lines;
}

Expected<Lines, Refusal> LinesOf(const TShape& shape, int axis, Layout layout) {
  const int64_t outer = shape.Product(0, axis), channels = shape[axis],
                inner = shape.Product(axis + 1, shape.ndim());
  if (layout.plain())
    return inner == 1 ? LinesOfRows(outer, channels) : LinesOfChannels(outer, channels, inner);
  const auto* blocked = dynamic_cast<const BlockedLayout*>(layout.desc());
  if (!blocked || axis != 1) return Refusal{"unsupported layout"};
  std::vector<int> order = blocked->order();
  if (blocked->blocks().empty() && order.size() > 1 && order.back() == 1) {
    order.pop_back();
    order.insert(order.begin() + 1, 1);
    if (std::is_sorted(order.begin(), order.end())) return LinesOfRows(outer * inner, channels);
  }
  if (!std::is_sorted(order.begin(), order.end()) || blocked->blocks().size() != 1)
    return Refusal{"unsupported layout"};
  const auto [block_axis, block] = blocked->blocks()[0];
  if (block_axis == 0 && outer % block == 0)
    return LinesOfChannels(outer / block, channels, inner * block);
  if (block_axis != 1 || (block != 16 && block != 8))
    return Refusal{"blocks of 8 or 16 channels only"};
  Lines lines{.images = outer,
              .groups = CeilDivide(channels, block),
              .group_stride = inner * block,
              .stride = block,
              .cells = inner};
  lines.image_stride = lines.groups * lines.group_stride;
  lines.width = lines.last_width = static_cast<int>(block);
  return lines;
}

// What a plan decided.
struct Planned {
  Settings settings;
  Lines lines;
  int64_t channels = 0, channel_size = 0;  // elements of a channel
  bool batch_statistics = false;
  bool stream = false;  // arrays are much larger than the caches

  Gate gate() const {
    if (settings.act == Settings::kNone) return Gate::kOpen;
    if (settings.with_sum) return Gate::kBits;
    if (settings.act == Settings::kSilu) return Gate::kSilu;
    if (settings.act == Settings::kHardSwish) return Gate::kHardSwish;
    return settings.act == Settings::kRelu ? Gate::kRelu : Gate::kRelu6;
  }
  // Arrays of the workspace, in floats, consecutive: coefficients, then partial sums.
  int64_t coefficients() const { return (lines.coefficients() + 15) / 16 * 16; }
  int64_t WorkspaceBytes(int arrays) const {
    return (arrays * coefficients() + lines.pieces() * lines.partials_of_piece()) *
           static_cast<int64_t>(sizeof(float));
  }
};
constexpr int kForwardArrays = 3, kBackwardArrays = 5;

template <typename T>
class BatchNormSimd final : public Operator {
 public:
  explicit BatchNormSimd(const Planned& planned) : s_(planned), lines_(planned.lines) {}

  void Forward(const ForwardArgs& args) override {
    float* const mean = Array(args.ctx, 0);
    float* const variance = Array(args.ctx, 1);  // until overwritten by the scale
    const T* x = args.in_data[P::kData].dptr<T>();
    if (s_.batch_statistics) {
      float* partials = Array(args.ctx, kForwardArrays);
      ForPieces(
          [&](int64_t begin, int64_t end) { kernels_.moments(lines_, x, partials, begin, end); });
      CombineMoments(partials, mean, variance);
    } else {
      Pad(args.aux_states[P::kMovingMean].dptr<float>(), mean);
      Pad(args.aux_states[P::kMovingVariance].dptr<float>(), variance);
    }
    if (!args.ctx.saved.empty()) {
      std::copy_n(mean, s_.channels, args.ctx.saved[kSavedMean].dptr<float>());
      std::copy_n(variance, s_.channels, args.ctx.saved[kSavedVariance].dptr<float>());
    }
    WriteStatistics(mean, variance, args.req, args.out_data);
    if (args.req[P::kOutput] == OpReqType::kNullOp) return;

    Application<T> a{.of = Prepare(args.ctx, args.in_data, mean, variance),
                     .x = x,
                     .sum = nullptr,
                     .y = args.out_data[P::kOutput].dptr<T>(),
                     .bits = nullptr};
    if (s_.settings.with_sum) a.sum = args.in_data[P::kSum].dptr<T>();
    if (s_.gate() == Gate::kBits && !args.ctx.saved.empty())
      a.bits = args.ctx.saved[kSavedBits].dptr<uint8_t>();
    a.act = static_cast<Epilogue::Act>(s_.settings.act);
    a.stream = s_.stream && args.req[P::kOutput] == OpReqType::kWriteTo;
    ForPieces([&](int64_t begin, int64_t end) { kernels_.apply(lines_, a, begin, end); });
  }

  void Backward(const BackwardArgs& args) override {
    const float* saved_mean = args.ctx.saved[kSavedMean].dptr<float>();
    const float* saved_variance = args.ctx.saved[kSavedVariance].dptr<float>();
    float* mean = Array(args.ctx, 0);
    Pad(saved_mean, mean);
    Gradient<T> g{.of = Prepare(args.ctx, args.in_data, mean, saved_variance),
                  .gate = s_.gate(),
                  .head = args.out_grad[P::kOutput].dptr<T>(),
                  .x = args.in_data[P::kData].dptr<T>(),
                  .bits = nullptr};
    if (g.gate == Gate::kBits) g.bits = args.ctx.saved[kSavedBits].dptr<uint8_t>();

    float* partials = Array(args.ctx, kBackwardArrays);
    float* offset = Array(args.ctx, 3);
    float* slope = Array(args.ctx, 4);
    ForPieces([&](int64_t begin, int64_t end) {
      kernels_.gradient_sums(lines_, g, partials, begin, end);
    });
    CombineGradients(partials, saved_variance, g.of.scale, args.req, args.in_grad, offset, slope);

    g.offset = offset;
    g.slope = slope;
    const auto take = [&](int argument, T** to, bool* add, bool* stream) {
      if (args.req[argument] == OpReqType::kNullOp) return;
      *to = args.in_grad[argument].dptr<T>();
      *add = args.req[argument] == OpReqType::kAddTo;
      *stream = s_.stream && args.req[argument] == OpReqType::kWriteTo;
    };
    take(P::kData, &g.dx, &g.add_dx, &g.stream_dx);
    if (s_.settings.with_sum) take(P::kSum, &g.dsum, &g.add_dsum, &g.stream_dsum);
    if (g.dx || g.dsum)
      ForPieces([&](int64_t begin, int64_t end) { kernels_.differentiate(lines_, g, begin, end); });

    if (!s_.batch_statistics) return;
    Average(saved_mean, args.aux_states[P::kMovingMean]);
    Average(saved_variance, args.aux_states[P::kMovingVariance]);
  }

 private:
  float* Array(const OpContext& ctx, int number) const {
    return static_cast<float*>(ctx.workspace.data) + number * s_.coefficients();
  }

  template <typename F>
  void ForPieces(F f) const {
    const int64_t piece = std::max<int64_t>(1, lines_.cells_of_piece() * lines_.width);
    ParallelFor(lines_.pieces(), std::max<int64_t>(1, kParallelGrain / piece), f);
  }
  template <typename F>
  void ForGroups(F f) const {
    ParallelFor(lines_.groups, std::max<int64_t>(1, 64 / lines_.channels_of_group()),
                [&](int64_t begin, int64_t end) {
                  for (int64_t group = begin; group < end; ++group) f(group);
                });
  }
  template <typename F>
  void ForPiecesOf(int64_t group, F f) const {
    const int64_t pieces = lines_.pieces_of_line();
    for (int64_t image = 0; image < lines_.images; ++image) {
      for (int64_t i = 0; i < pieces; ++i) f((image * lines_.groups + group) * pieces + i);
    }
  }

  void Pad(const float* from, float* to) const {
    std::copy_n(from, s_.channels, to);
    std::fill(to + s_.channels, to + s_.coefficients(), 0.0f);
  }

  void CombineMoments(const float* partials, float* mean, float* variance) const {
    const int64_t width = lines_.channels_of_group(), step = lines_.partials_of_piece();
    const double all = static_cast<double>(s_.channel_size);
    ForGroups([&](int64_t group) {
      double means[16] = {}, squares[16] = {};
      ForPiecesOf(group, [&](int64_t number) {
        const double count = CountOf(number);
        for (int64_t c = 0; c < width; ++c) means[c] += count * partials[number * step + c];
      });
      for (int64_t c = 0; c < width; ++c) means[c] /= all;
      ForPiecesOf(group, [&](int64_t number) {
        const double count = CountOf(number);
        for (int64_t c = 0; c < width; ++c) {
          const double distance = partials[number * step + c] - means[c];
          squares[c] += partials[number * step + width + c] + count * distance * distance;
        }
      });
      for (int64_t c = 0; c < width; ++c) {
        const bool there = group * width + c < s_.channels;
        mean[group * width + c] = there ? static_cast<float>(means[c]) : 0.0f;
        variance[group * width + c] =
            there ? static_cast<float>(std::max(0.0, squares[c] / all)) : 0.0f;
      }
    });
  }
  double CountOf(int64_t number) const {
    const Piece piece(lines_, number);
    return static_cast<double>(lines_.broadcast ? piece.cells * lines_.width + piece.rest
                                                : piece.cells);
  }

  float InverseDeviation(float variance) const { return 1 / std::sqrt(variance + s_.settings.eps); }

  // Coefficients of the normalization; `variance` may share memory with the scale.
  Coefficients Prepare(const OpContext& ctx, std::span<const TBlob> in, const float* mean,
                       const float* variance) const {
    float* scale = Array(ctx, 1);
    float* shift = Array(ctx, 2);
    const float* gamma = s_.settings.fix_gamma ? nullptr : in[P::kGamma].dptr<float>();
    for (int64_t c = 0; c < s_.channels; ++c)
      scale[c] = InverseDeviation(variance[c]) * (gamma ? gamma[c] : 1.0f);
    std::fill(scale + s_.channels, scale + s_.coefficients(), 0.0f);
    if (const float* beta = in[P::kBeta].dptr<float>()) Pad(beta, shift);
    return {mean, scale, shift};
  }

  void WriteStatistics(const float* mean, const float* variance, std::span<const OpReqType> req,
                       std::span<const TBlob> out) const {
    SwitchReq(req[P::kMean], [&](auto) {
      for (int64_t c = 0; c < s_.channels; ++c)
        Assign(req[P::kMean], out[P::kMean].dptr<float>(), c, mean[c]);
    });
    SwitchReq(req[P::kInverseDeviation], [&](auto) {
      for (int64_t c = 0; c < s_.channels; ++c) {
        Assign(req[P::kInverseDeviation], out[P::kInverseDeviation].dptr<float>(), c,
               InverseDeviation(variance[c]));
      }
    });
  }

  // Computes the gradients of gamma and beta and the coefficients of the data's gradient from the
  // partial sums.
  void CombineGradients(const float* partials, const float* variance, const float* scale,
                        std::span<const OpReqType> req, std::span<const TBlob> in_grad,
                        float* offset, float* slope) const {
    const int64_t width = lines_.channels_of_group(), step = lines_.partials_of_piece();
    const double all = static_cast<double>(s_.channel_size);
    ForGroups([&](int64_t group) {
      double sums[16] = {}, along[16] = {};
      ForPiecesOf(group, [&](int64_t number) {
        for (int64_t c = 0; c < width; ++c) {
          sums[c] += partials[number * step + c];
          along[c] += partials[number * step + width + c];
        }
      });
      for (int64_t i = 0; i < width; ++i) {
        const int64_t c = group * width + i;
        offset[c] = slope[c] = 0;
        if (c >= s_.channels) continue;
        const double inverse = InverseDeviation(variance[c]);
        Set(req[P::kGamma], in_grad[P::kGamma], c,
            s_.settings.fix_gamma ? 0.0 : along[i] * inverse);
        Set(req[P::kBeta], in_grad[P::kBeta], c, sums[i]);
        if (!s_.batch_statistics) continue;
        offset[c] = static_cast<float>(-scale[c] * sums[i] / all);
        slope[c] = static_cast<float>(scale[c] * inverse * inverse * along[i] / all);
      }
    });
  }
  static void Set(OpReqType req, const TBlob& array, int64_t at, double value) {
    if (req != OpReqType::kNullOp) Assign(req, array.dptr<float>(), at, static_cast<float>(value));
  }

  void Average(const float* now, const TBlob& moving) const {
    const float keep = s_.settings.momentum;
    for (int64_t c = 0; c < s_.channels; ++c)
      moving.dptr<float>()[c] = keep * moving.dptr<float>()[c] + (1 - keep) * now[c];
  }

  const Planned s_;
  const Lines& lines_ = s_.lines;
  const Kernels<T>& kernels_ = KernelsOf<T>();
};

Expected<Plan, Refusal> PlanSimd(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const Settings& settings = static_cast<const BatchNormProperty&>(base).settings();
  const TensorSpec& data = request.in[P::kData];
  if (data.type != DType::kFloat32 && data.type != DType::kBfloat16)
    return Refusal{"float32 and bfloat16 only"};
  if (data.shape.Size() == 0) return Refusal{"empty array"};
  if (request.out_req[P::kOutput] == OpReqType::kAddTo)
    return Refusal{"kAddTo of the output is not supported"};
  const int axis = ChannelAxis(settings, data.shape.ndim());
  Layout layout = request.in_layout[P::kData].value_or(Layout());
  if (!request.in_layout[P::kData] && settings.with_sum)
    layout = request.in_layout[P::kSum].value_or(Layout());
  auto lines = LinesOf(data.shape, axis, layout);
  if (!lines && !layout.plain()) lines = LinesOf(data.shape, axis, layout = Layout());
  if (!lines) return lines.error();

  Planned planned{settings, *lines};
  planned.channels = data.shape[axis];
  planned.channel_size = data.shape.Size() / planned.channels;
  planned.batch_statistics = request.is_train && !settings.use_global_stats;
  const int64_t bytes = layout.Bytes(data.shape, data.type);
  planned.stream = lines->stride == lines->width && lines->rest == 0 &&
                   bytes > kStreamCaches * LastLevelCacheBytes();

  Plan plan = PlainPlan(base, request);
  plan.in[P::kData] = plan.out[P::kOutput] = layout;
  if (settings.with_sum) plan.in[P::kSum] = layout;
  GrantInplace(base, request, &plan);
  plan.forward_workspace = planned.WorkspaceBytes(kForwardArrays);
  if (request.needs_backward) {
    const Gate gate = planned.gate();
    const int64_t channel_bytes = planned.channels * static_cast<int64_t>(sizeof(float));
    plan.saved = {channel_bytes, channel_bytes};
    if (gate == Gate::kBits) plan.saved.push_back(lines->pieces() * lines->mask_bytes_of_piece());
    plan.backward_workspace = planned.WorkspaceBytes(kBackwardArrays);
    const bool again = gate != Gate::kOpen && gate != Gate::kBits;
    plan.backward_reads = BackwardReads{
        {true, false, false}, {true, !settings.fix_gamma, again}, {false, false, false}};
    if (settings.with_sum) plan.backward_reads->in_data.push_back(false);
  }
  plan.make = [planned, narrow = data.type == DType::kBfloat16]() -> std::unique_ptr<Operator> {
    if (narrow) return std::make_unique<BatchNormSimd<bfloat16>>(planned);
    return std::make_unique<BatchNormSimd<float>>(planned);
  };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm_simd_cpu, registry) {
  for (const char* op : {"BatchNorm", "_BatchNormActivation"}) {
    registry.AddKernel({op, mxtrain::DeviceType::kCPU, "simd", 90, mxtrain::PlanSimd});
  }
}
