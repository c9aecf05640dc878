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
#include "mxtrain/operator/batch_sums.h"
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
class BatchNormSimd final : public Operator, public BatchSums {
 public:
  explicit BatchNormSimd(const Planned& planned) : s_(planned), lines_(planned.lines) {}

  void Forward(const ForwardArgs& args) override {
    if (!s_.batch_statistics) {
      Pad(args.aux_states[P::kMovingMean].dptr<float>(), MeanOf(args));
      Pad(args.aux_states[P::kMovingVariance].dptr<float>(), VarianceOf(args));
      return Apply(args);
    }
    const double all = static_cast<double>(s_.channel_size);
    TakeMoments(args, [&](int64_t c, double mean, double squares) {
      SetStatistics(args, c, mean, squares / all);
    });
    PadStatistics(args);
    Apply(args);
  }

  void Backward(const BackwardArgs& args) override {
    Gradient<T> g = GradientOf(args);
    const double all = static_cast<double>(s_.channel_size);
    TakeGradientSums(args, g, [&](int64_t c, double sum, double along) {
      SetParameterGradients(args, c, sum, along);
      SetCoefficients(args, g.of, c, sum, along, all);
    });
    Differentiate(args, &g);
  }

  int64_t NumForwardSums() const override {
    return s_.batch_statistics ? NumChannelSums(s_.channels) : 0;
  }
  int64_t NumBackwardSums() const override { return NumForwardSums(); }

  void SumForward(const ForwardArgs& args, std::span<double> sums) override {
    const double all = static_cast<double>(s_.channel_size);
    TakeMoments(args, [&](int64_t c, double mean, double squares) {
      sums[c] = all * mean;
      sums[s_.channels + c] = squares + all * mean * mean;
    });
    sums[2 * s_.channels] = all;
  }

  void ForwardWith(const ForwardArgs& args, std::span<const double> sums) override {
    const double all = sums[2 * s_.channels];
    for (int64_t c = 0; c < s_.channels; ++c) {
      const double mean = sums[c] / all;
      SetStatistics(args, c, mean, sums[s_.channels + c] / all - mean * mean);
    }
    PadStatistics(args);
    Apply(args);
  }

  void SumBackward(const BackwardArgs& args, std::span<double> sums) override {
    TakeGradientSums(args, GradientOf(args), [&](int64_t c, double sum, double along) {
      SetParameterGradients(args, c, sum, along);
      sums[c] = sum;
      sums[s_.channels + c] = along;
    });
    sums[2 * s_.channels] = static_cast<double>(s_.channel_size);
  }

  void BackwardWith(const BackwardArgs& args, std::span<const double> sums) override {
    Gradient<T> g = GradientOf(args);
    const double all = sums[2 * s_.channels];
    for (int64_t c = 0; c < s_.channels; ++c)
      SetCoefficients(args, g.of, c, sums[c], sums[s_.channels + c], all);
    Differentiate(args, &g);
  }

 private:
  // Of the workspace: in forward ...
  float* MeanOf(const ForwardArgs& args) const { return Array(args.ctx, 0); }
  float* VarianceOf(const ForwardArgs& args) const {  // until overwritten by the scale
    return Array(args.ctx, 1);
  }
  // ... and in backward.
  float* OffsetOf(const BackwardArgs& args) const { return Array(args.ctx, 3); }
  float* SlopeOf(const BackwardArgs& args) const { return Array(args.ctx, 4); }

  void SetStatistics(const ForwardArgs& args, int64_t c, double mean, double variance) const {
    MeanOf(args)[c] = static_cast<float>(mean);
    VarianceOf(args)[c] = static_cast<float>(std::max(0.0, variance));
  }
  void PadStatistics(const ForwardArgs& args) const {
    for (float* array : {MeanOf(args), VarianceOf(args)})
      std::fill(array + s_.channels, array + s_.coefficients(), 0.0f);
  }

  // By the statistics of the workspace.
  void Apply(const ForwardArgs& args) const {
    const float* const mean = MeanOf(args);
    const float* const variance = VarianceOf(args);
    if (!args.ctx.saved.empty()) {
      std::copy_n(mean, s_.channels, args.ctx.saved[kSavedMean].dptr<float>());
      std::copy_n(variance, s_.channels, args.ctx.saved[kSavedVariance].dptr<float>());
    }
    WriteStatistics(mean, variance, args.req, args.out_data);
    if (args.req[P::kOutput] == OpReqType::kNullOp) return;

    Application<T> a{.of = Prepare(args.ctx, args.in_data, mean, variance),
                     .x = args.in_data[P::kData].dptr<T>(),
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

  // Without offset, slope and results.
  Gradient<T> GradientOf(const BackwardArgs& args) const {
    float* mean = Array(args.ctx, 0);
    Pad(args.ctx.saved[kSavedMean].dptr<float>(), mean);
    Gradient<T> g{.of = Prepare(args.ctx, args.in_data, mean, SavedVariance(args)),
                  .gate = s_.gate(),
                  .head = args.out_grad[P::kOutput].dptr<T>(),
                  .x = args.in_data[P::kData].dptr<T>(),
                  .bits = nullptr};
    if (g.gate == Gate::kBits) g.bits = args.ctx.saved[kSavedBits].dptr<uint8_t>();
    return g;
  }
  const float* SavedVariance(const BackwardArgs& args) const {
    return args.ctx.saved[kSavedVariance].dptr<float>();
  }

  // By offset and slope of the workspace; then the moving averages.
  void Differentiate(const BackwardArgs& args, Gradient<T>* gradient) const {
    Gradient<T>& g = *gradient;
    g.offset = OffsetOf(args);
    g.slope = SlopeOf(args);
    for (float* array : {OffsetOf(args), SlopeOf(args)})
      std::fill(array + s_.channels, array + s_.coefficients(), 0.0f);
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
    Average(args.ctx.saved[kSavedMean].dptr<float>(), args.aux_states[P::kMovingMean]);
    Average(SavedVariance(args), args.aux_states[P::kMovingVariance]);
  }

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

  // take(channel, mean, sum of the squared deviations from it) for every channel.
  template <typename F>
  void TakeMoments(const ForwardArgs& args, F take) const {
    const T* x = args.in_data[P::kData].dptr<T>();
    float* const partials = Array(args.ctx, kForwardArrays);
    ForPieces(
        [&](int64_t begin, int64_t end) { kernels_.moments(lines_, x, partials, begin, end); });
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
      for (int64_t c = 0; c < width && group * width + c < s_.channels; ++c)
        take(group * width + c, means[c], squares[c]);
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

  // take(channel, sum of the gradient, sum of the gradient times the deviation) for every channel.
  template <typename F>
  void TakeGradientSums(const BackwardArgs& args, const Gradient<T>& g, F take) const {
    float* const partials = Array(args.ctx, kBackwardArrays);
    ForPieces([&](int64_t begin, int64_t end) {
      kernels_.gradient_sums(lines_, g, partials, begin, end);
    });
    const int64_t width = lines_.channels_of_group(), step = lines_.partials_of_piece();
    ForGroups([&](int64_t group) {
      double sums[16] = {}, along[16] = {};
      ForPiecesOf(group, [&](int64_t number) {
        for (int64_t c = 0; c < width; ++c) {
          sums[c] += partials[number * step + c];
          along[c] += partials[number * step + width + c];
        }
      });
      for (int64_t i = 0; i < width && group * width + i < s_.channels; ++i)
        take(group * width + i, sums[i], along[i]);
    });
  }
  void SetParameterGradients(const BackwardArgs& args, int64_t c, double sum, double along) const {
    Set(args.req[P::kGamma], args.in_grad[P::kGamma], c,
        s_.settings.fix_gamma ? 0.0 : along * InverseDeviation(SavedVariance(args)[c]));
    Set(args.req[P::kBeta], args.in_grad[P::kBeta], c, sum);
  }
  // Of the data's gradient, from the sums over `all` elements.
  void SetCoefficients(const BackwardArgs& args, const Coefficients& of, int64_t c, double sum,
                       double along, double all) const {
    const double inverse = InverseDeviation(SavedVariance(args)[c]);
    const bool batch = s_.batch_statistics;
    OffsetOf(args)[c] = batch ? static_cast<float>(-of.scale[c] * sum / all) : 0.0f;
    SlopeOf(args)[c] =
        batch ? static_cast<float>(of.scale[c] * inverse * inverse * along / all) : 0.0f;
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
  if (settings.with_batch_sums || settings.gated_gradient) return Refusal{"makes the sums itself"};
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
