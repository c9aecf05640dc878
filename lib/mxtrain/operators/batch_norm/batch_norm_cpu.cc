// The meaning of BatchNorm, and of its fusion with a sum and an activation, in loops; a thread works on whole channels.
#include <cmath>

#include "mxtrain/operator/kernel.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operators/batch_norm/batch_norm.h"

namespace mxtrain {
namespace {

using P = BatchNormProperty;
enum Saved { kSavedMean, kSavedVariance, kSavedMask };

// An array as [outer, channels, inner].
struct Channels {
  int64_t outer, count, inner;

  Channels(const TShape& shape, int axis)
      : outer(shape.Product(0, axis)), count(shape[axis]), inner(shape.Product(axis + 1, shape.ndim())) {}
  int64_t size() const { return outer * inner; }  // of one channel

  // f(element) for the elements of a channel.
  template <typename F>
  void ForElements(int64_t channel, F f) const {
    for (int64_t o = 0; o < outer; ++o) {
      const int64_t begin = (o * count + channel) * inner;
      for (int64_t at = begin; at < begin + inner; ++at) f(at);
    }
  }
  // f(channel) for every channel, over the team.
  template <typename F>
  void ForEach(F f) const {
    ParallelFor(count, 1, [&](int64_t begin, int64_t end) {
      for (int64_t channel = begin; channel < end; ++channel) f(channel);
    });
  }
};

template <typename A>
struct Moments {
  A mean, variance;
};

template <typename T>
Moments<AccumulatorOf<T>> MomentsOf(const T* x, const Channels& channels, int64_t channel) {
  using A = AccumulatorOf<T>;
  const A size = static_cast<A>(channels.size());
  A sum = 0, squares = 0;
  channels.ForElements(channel, [&](int64_t at) { sum += A(x[at]); });
  const A mean = sum / size;
  channels.ForElements(channel, [&](int64_t at) { squares += (A(x[at]) - mean) * (A(x[at]) - mean); });
  return {mean, squares / size};
}

class BatchNormReference final : public Operator {
 public:
  explicit BatchNormReference(const BatchNormSettings& settings) : settings_(settings) {}

  void Forward(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
               std::span<const TBlob> aux) override {
    SwitchFloating(in[P::kData].type, "BatchNorm", [&](auto tag) { ForwardOf<typename decltype(tag)::type>(ctx, in, req, out, aux); });
  }

  void Backward(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const TBlob>,
                std::span<const OpReqType> req, std::span<const TBlob> in_grad, std::span<const TBlob> aux) override {
    SwitchFloating(in[P::kData].type, "BatchNorm",
                   [&](auto tag) { BackwardOf<typename decltype(tag)::type>(ctx, out_grad, in, req, in_grad, aux); });
  }

 private:
  template <typename T>
  void ForwardOf(const OpContext& ctx, std::span<const TBlob> in, std::span<const OpReqType> req, std::span<const TBlob> out,
                 std::span<const TBlob> aux) const {
    using A = AccumulatorOf<T>;
    const Channels channels(in[P::kData].shape, ChannelAxis(settings_, in[P::kData].shape.ndim()));
    const T* x = in[P::kData].dptr<T>();
    T* y = out[P::kOutput].dptr<T>();
    const T* sum = settings_.with_sum ? in[P::kSum].dptr<T>() : nullptr;
    uint8_t* mask = activates() && !ctx.saved.empty() ? ctx.saved[kSavedMask].dptr<uint8_t>() : nullptr;
    channels.ForEach([&](int64_t c) {
      const bool batch = ctx.is_train && !settings_.use_global_stats;
      const Moments<A> m = batch && channels.size() > 0
                               ? MomentsOf(x, channels, c)
                               : Moments<A>{aux[P::kMovingMean].dptr<A>()[c], aux[P::kMovingVariance].dptr<A>()[c]};
      const A inverse = 1 / std::sqrt(m.variance + A(settings_.eps));
      if (!ctx.saved.empty()) {
        ctx.saved[kSavedMean].dptr<A>()[c] = m.mean;
        ctx.saved[kSavedVariance].dptr<A>()[c] = m.variance;
      }
      SwitchReq(req[P::kMean], [&](auto) { Assign(req[P::kMean], out[P::kMean].dptr<A>(), c, m.mean); });
      SwitchReq(req[P::kInverseDeviation],
                [&](auto) { Assign(req[P::kInverseDeviation], out[P::kInverseDeviation].dptr<A>(), c, inverse); });
      const A scale = inverse * Gamma<A>(in, c), shift = in[P::kBeta].dptr<A>()[c];
      channels.ForElements(c, [&](int64_t at) {
        A value = (A(x[at]) - m.mean) * scale + shift;
        if (sum) value += A(sum[at]);
        if (mask) mask[at] = Passes(value);
        value = Activate(value);
        if (req[P::kOutput] != OpReqType::kNullOp) Assign(req[P::kOutput], y, at, value);
      });
    });
  }

  template <typename T>
  void BackwardOf(const OpContext& ctx, std::span<const TBlob> out_grad, std::span<const TBlob> in, std::span<const OpReqType> req,
                  std::span<const TBlob> in_grad, std::span<const TBlob> aux) const {
    using A = AccumulatorOf<T>;
    const Channels channels(in[P::kData].shape, ChannelAxis(settings_, in[P::kData].shape.ndim()));
    const T* x = in[P::kData].dptr<T>();
    const T* head = out_grad[P::kOutput].dptr<T>();
    const uint8_t* mask = activates() ? ctx.saved[kSavedMask].dptr<uint8_t>() : nullptr;
    const bool batch = ctx.is_train && !settings_.use_global_stats;
    channels.ForEach([&](int64_t c) {
      const A mean = ctx.saved[kSavedMean].dptr<A>()[c], variance = ctx.saved[kSavedVariance].dptr<A>()[c];
      const A inverse = 1 / std::sqrt(variance + A(settings_.eps));
      const auto gradient = [&](int64_t at) { return mask && !mask[at] ? A(0) : A(head[at]); };
      A sum = 0, along = 0;  // of the gradient, and of the gradient times the normalised data
      channels.ForElements(c, [&](int64_t at) {
        sum += gradient(at);
        along += gradient(at) * (A(x[at]) - mean) * inverse;
      });
      Set<A>(req[P::kGamma], in_grad[P::kGamma], c, settings_.fix_gamma ? A(0) : along);
      Set<A>(req[P::kBeta], in_grad[P::kBeta], c, sum);
      const A size = static_cast<A>(channels.size()), scale = inverse * Gamma<A>(in, c);
      const A mean_gradient = batch ? sum / size : A(0), mean_along = batch ? along / size : A(0);
      const bool data = req[P::kData] != OpReqType::kNullOp, addend = settings_.with_sum && req[P::kSum] != OpReqType::kNullOp;
      channels.ForElements(c, [&](int64_t at) {
        const A g = gradient(at), normal = (A(x[at]) - mean) * inverse;  // before either result lies over them
        if (data) Assign(req[P::kData], in_grad[P::kData].dptr<T>(), at, scale * (g - mean_gradient - normal * mean_along));
        if (addend) Assign(req[P::kSum], in_grad[P::kSum].dptr<T>(), at, g);
      });
      if (batch && channels.size() > 0) {
        Average(aux[P::kMovingMean].dptr<A>() + c, mean);
        Average(aux[P::kMovingVariance].dptr<A>() + c, variance);
      }
    });
  }

  bool activates() const { return settings_.act != BatchNormSettings::kNone; }
  // Whether the gradient passes, as Activation and clip have it: a bound of clip belongs to it, that of ReLU does not.
  template <typename A>
  bool Passes(A value) const {
    return settings_.act == BatchNormSettings::kRelu6 ? value >= 0 && value <= 6 : value > 0;
  }
  template <typename A>
  A Activate(A value) const {
    if (!activates()) return value;
    if (settings_.act == BatchNormSettings::kRelu6 && value > 6) return 6;
    return value < 0 ? A(0) : value;
  }
  template <typename A>
  A Gamma(std::span<const TBlob> in, int64_t channel) const {
    return settings_.fix_gamma ? A(1) : in[P::kGamma].dptr<A>()[channel];
  }
  template <typename A>
  void Average(A* moving, A now) const {
    *moving = A(settings_.momentum) * *moving + (A(1) - A(settings_.momentum)) * now;
  }
  template <typename A>
  static void Set(OpReqType req, const TBlob& array, int64_t at, A value) {
    if (req != OpReqType::kNullOp) Assign(req, array.dptr<A>(), at, value);
  }

  BatchNormSettings settings_;
};

Expected<Plan, Refusal> PlanReference(const OperatorProperty& base, const PlanRequest& request, Backend&) {
  Plan plan = PlainPlan(base, request);
  const BatchNormSettings& settings = static_cast<const BatchNormProperty&>(base).settings();
  if (request.needs_backward) {
    const int64_t channel_bytes = request.in[P::kGamma].Bytes();
    plan.saved = {channel_bytes, channel_bytes};
    if (settings.act != BatchNormSettings::kNone) plan.saved.push_back(request.in[P::kData].shape.Size());
    plan.backward_reads = BackwardReads{{true, false, false}, {true, !settings.fix_gamma, false}, {false, false, false}};
    if (settings.with_sum) plan.backward_reads->in_data.push_back(false);
  }
  plan.make = [settings] { return std::make_unique<BatchNormReference>(settings); };
  return plan;
}

}  // namespace
}  // namespace mxtrain

MXTRAIN_OPERATOR(batch_norm_cpu, registry) {
  for (const char* op : {"BatchNorm", "_BatchNormActivation"}) {
    registry.AddRow({op, mxtrain::DeviceType::kCPU, "ref", mxtrain::kRefRank, mxtrain::PlanReference});
  }
}
