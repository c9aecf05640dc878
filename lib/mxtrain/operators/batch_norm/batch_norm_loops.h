// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of BatchNorm and of its fusion with a sum and an activation. Written once for
// both devices: Device is OnCpu or OnGpu.
//
// Forward: sums over every channel, the values derived from them per channel (Line), then every
// element. Backward likewise (Slope).
#include <cmath>
#include <memory>

#include "mxtrain/operator/batch_sums.h"
#include "mxtrain/operator/channel_moments.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/vector_math.h"
#include "mxtrain/operators/batch_norm/batch_norm.h"

namespace mxtrain::batch_norm {

using P = BatchNormProperty;
enum Saved { kSavedMean, kSavedVariance, kSavedGate };

// How backward knows what of a gradient passes the activation: all does; from the channel's Line
// (saved) and x; from the output; or from one byte per element (saved).
enum class GateBy { kNothing, kLine, kOutput, kMask };
inline GateBy GateOf(const BatchNormSettings& settings) {
  if (settings.act == BatchNormSettings::kNone || settings.gated_gradient) return GateBy::kNothing;
  if (!settings.with_sum) return GateBy::kLine;
  return settings.act == BatchNormSettings::kRelu ? GateBy::kOutput : GateBy::kMask;
}

using Sums = TwoSums;

// The activation of a fused operator.
struct Activation {
  int act;
  MXTRAIN_HD bool on() const { return act != BatchNormSettings::kNone; }
  MXTRAIN_HD bool self_gated() const {
    return act == BatchNormSettings::kSilu || act == BatchNormSettings::kHardSwish;
  }
  // Of the self-gated ones.
  template <typename A>
  MXTRAIN_HD A Slope(A value) const {
    if (act == BatchNormSettings::kHardSwish)
      return value < A(-3) ? A(0) : value > A(3) ? A(1) : (value + value + A(3)) * A(1.0 / 6);
    const A s = vector_math::Sigmoid(value);
    return s * (A(1) + value * (A(1) - s));
  }
  // Whether the gradient passes, as for Activation and clip: clip includes its bounds, ReLU does
  // not.
  template <typename A>
  MXTRAIN_HD bool Passes(A value) const {
    return act == BatchNormSettings::kRelu6 ? value >= 0 && value <= 6 : value > 0;
  }
  template <typename A>
  MXTRAIN_HD A operator()(A value) const {
    if (!on()) return value;
    if (act == BatchNormSettings::kSilu) return value * vector_math::Sigmoid(value);
    if (act == BatchNormSettings::kHardSwish) {
      const A shifted = value + A(3);
      return value * ((shifted < 0 ? A(0) : shifted > 6 ? A(6) : shifted) * A(1.0 / 6));
    }
    if (act == BatchNormSettings::kRelu6 && value > 6) return 6;
    return value < 0 ? A(0) : value;
  }
};

// y = (x - mean) scale + shift, of one channel.
template <typename A>
struct Line {
  A mean, scale, shift;
  MXTRAIN_HD A operator()(A x) const { return (x - mean) * scale + shift; }
};

// The sums of a divided batch; see NumChannelSums.
struct WholeSums {
  const double* at;  // null: the batch is not divided
  int64_t channels;
  MXTRAIN_HD double size() const { return at[2 * channels]; }
  MXTRAIN_HD Sums Of(int64_t c) const { return {at[c], at[channels + c]}; }
};
// Sums that another operator has made. In forward as with_batch_sums says; in backward as
// gated_gradient does.
template <typename A>
struct GivenSums {
  const A *first, *second;  // [channels]; null: there are none
  MXTRAIN_HD Sums Of(int64_t c) const {
    return {static_cast<double>(first[c]), static_cast<double>(second[c])};
  }
};
template <typename T>
struct WriteForwardSums {
  Distances<T> distances;
  const Sums* sums;
  double* to;
  MXTRAIN_HD void operator()(int64_t c) const {
    const int64_t channels = distances.view.channels;
    const double n = static_cast<double>(distances.view.size()), origin = distances.Of(c);
    to[c] = sums[c].first + n * origin;
    to[channels + c] = sums[c].second + origin * (2 * sums[c].first + n * origin);
    if (c == 0) to[2 * channels] = n;
  }
};

// The values of a channel derived from the sums.
template <typename T>
struct MakeLine {
  using A = AccumulatorOf<T>;
  Distances<T> distances;
  // One of these, or, without, the moving averages.
  const Sums* sums;
  WholeSums whole;
  GivenSums<A> given;
  const A *gamma, *beta, *moving_mean, *moving_variance;  // gamma: null for 1
  A eps;
  A *saved_mean, *saved_variance, *out_mean, *out_inverse;  // saved: null without a backward pass
  OpReqType mean_req, inverse_req;
  Line<A>* lines;

  MXTRAIN_HD void operator()(int64_t c) const {
    A mean = moving_mean[c], variance = moving_variance[c];
    const double n = static_cast<double>(distances.view.size());
    if (sums) {
      Set(sums[c], n, distances.Of(c), &mean, &variance);
    } else if (given.first) {
      Set(given.Of(c), n, 0, &mean, &variance);
    } else if (whole.at) {
      Set(whole.Of(c), whole.size(), 0, &mean, &variance);
    }
    const A inverse = 1 / std::sqrt(variance + eps);
    if (saved_mean) {
      saved_mean[c] = mean;
      saved_variance[c] = variance;
    }
    if (mean_req != OpReqType::kNullOp) Assign(mean_req, out_mean, c, mean);
    if (inverse_req != OpReqType::kNullOp) Assign(inverse_req, out_inverse, c, inverse);
    lines[c] = {mean, inverse * (gamma ? gamma[c] : A(1)), beta[c]};
  }
  // From the sums of n deviations from `origin`.
  MXTRAIN_HD static void Set(const Sums& of, double n, double origin, A* mean, A* variance) {
    const double away = of.first / n, spread = of.second / n - away * away;
    *mean = static_cast<A>(origin + away);
    *variance = static_cast<A>(spread > 0 ? spread : spread != spread ? spread : 0);
  }
};

// As Assign, for an element of a pack.
template <typename T>
MXTRAIN_HD inline void Put(OpReqType req, AccumulatorOf<T> value, T* to) {
  *to = static_cast<T>(req == OpReqType::kAddTo ? AccumulatorOf<T>(*to) + value : value);
}

// The last pass, element by element. ForElements (below) calls Of(channel) once for many elements
// of a channel, and Read(at) for several elements before it passes the first of them to Write(at,
// of, read). With ReadPack and WritePack a GPU does so for kPack channels at once, if Aligned.
template <typename T>
struct Normalise {
  using A = AccumulatorOf<T>;
  struct Element {
    T x, sum;
  };
  const Line<A>* lines;
  const T *x, *sum;  // sum: null if absent
  Activation activation;
  uint8_t* mask;  // of passing elements; null: not wanted
  T* y;
  OpReqType req;
  MXTRAIN_HD Line<A> Of(int64_t channel) const { return lines[channel]; }
  MXTRAIN_HD Element Read(int64_t at) const { return {x[at], sum ? sum[at] : T()}; }
  MXTRAIN_HD void Write(int64_t at, const Line<A>& line, const Element& e) const {
    A value = line(A(e.x));
    if (sum) value += A(e.sum);
    if (mask) mask[at] = activation.Passes(value);
    if (req != OpReqType::kNullOp) Assign(req, y, at, activation(value));
  }

  static constexpr int kPack = kPackOf<T> / 2;
  struct Pack {
    ChannelPack<T, kPack> x, sum;
  };
  bool Aligned() const {
    return TakesPacks(x) && TakesPacks(sum) && TakesPacks(mask) && TakesPacks(y);
  }
  MXTRAIN_HD Pack ReadPack(int64_t at) const {
    using Elements = ChannelPack<T, kPack>;
    return {Elements::At(x + at), sum ? Elements::At(sum + at) : Elements()};
  }
  MXTRAIN_HD void WritePack(int64_t at, const Line<A>* of, const Pack& pack) const {
    ChannelPack<T, kPack> out{};
    ChannelPack<uint8_t, kPack> passes;
    if (req == OpReqType::kAddTo) out = ChannelPack<T, kPack>::At(y + at);
    ForPack<kPack>([&](int k) {
      A value = of[k](A(pack.x.v[k]));
      if (sum) value += A(pack.sum.v[k]);
      passes.v[k] = activation.Passes(value);
      Put(req, activation(value), &out.v[k]);
    });
    if (mask) passes.Put(mask + at);
    if (req != OpReqType::kNullOp) out.Put(y + at);
  }
};

// What backward reads of an element, and what of the head gradient passes the activation. GateOf
// selects at most one of lines, output and mask; the others are null.
template <typename T>
struct Heads {
  using A = AccumulatorOf<T>;
  struct Element {
    T head, x;
    bool open;
  };
  const T *head, *x;
  Activation activation;
  const Line<A>* lines;
  const T* output;
  const uint8_t* mask;
  MXTRAIN_HD Line<A> Of(int64_t channel) const { return lines ? lines[channel] : Line<A>{}; }
  MXTRAIN_HD Element Read(int64_t at) const {
    return {head[at], x[at], output ? A(output[at]) > 0 : !mask || mask[at]};
  }
  template <int kWidth>
  struct Pack {
    ChannelPack<T, kWidth> head, x, output;
    ChannelPack<uint8_t, kWidth> mask;
  };
  bool Aligned() const {
    return TakesPacks(head) && TakesPacks(x) && TakesPacks(output) && TakesPacks(mask);
  }
  template <int kWidth>
  MXTRAIN_HD Pack<kWidth> ReadPack(int64_t at) const {
    using Elements = ChannelPack<T, kWidth>;
    using Bytes = ChannelPack<uint8_t, kWidth>;
    return {Elements::At(head + at), Elements::At(x + at),
            output ? Elements::At(output + at) : Elements(), mask ? Bytes::At(mask + at) : Bytes()};
  }
  template <int kWidth>
  MXTRAIN_HD Element ElementOf(const Pack<kWidth>& pack, int k) const {
    return {pack.head.v[k], pack.x.v[k],
            output ? A(pack.output.v[k]) > 0 : !mask || pack.mask.v[k]};
  }
  MXTRAIN_HD A Gradient(const Element& e, const Line<A>& line) const {
    if (activation.self_gated()) return A(e.head) * activation.Slope(line(A(e.x)));
    return e.open && (!lines || activation.Passes(line(A(e.x)))) ? A(e.head) : A(0);
  }
};
// Sums of the gradient, and of the gradient times the deviation from the mean.
template <typename T>
struct GradientTerms {
  using A = AccumulatorOf<T>;
  Heads<T> heads;
  const A* mean;
  struct Channel {
    Line<A> line;
    A mean;
  };
  MXTRAIN_HD Channel Of(int64_t channel) const { return {heads.Of(channel), mean[channel]}; }
  MXTRAIN_HD Sums operator()(int64_t at, const Channel& channel) const {
    const auto e = heads.Read(at);
    const double g = static_cast<double>(heads.Gradient(e, channel.line));
    return {g, g * (static_cast<double>(e.x) - static_cast<double>(channel.mean))};
  }

  // Of fewer channels, since what each of them needs fills the registers.
  static constexpr int kPack = kPackOf<T> > 4 ? kPackOf<T> / 4 : 1;
  using Pack = typename Heads<T>::template Pack<kPack>;
  bool Aligned() const { return heads.Aligned(); }
  MXTRAIN_HD Pack ReadPack(int64_t at) const { return heads.template ReadPack<kPack>(at); }
  MXTRAIN_HD FewSums<A> Term(const Pack& pack, int k, const Channel& channel) const {
    const auto e = heads.ElementOf(pack, k);
    const A g = heads.Gradient(e, channel.line);
    return {g, g * (A(e.x) - channel.mean)};
  }
};

// dx = scale (g - mean_gradient - (x - mean) inverse mean_along), of one channel. The shift is that
// of lines, if given.
template <typename A>
struct Slope : Line<A> {
  A inverse, mean_gradient, mean_along;
};

template <typename T>
struct MakeSlope {
  using A = AccumulatorOf<T>;
  int64_t channels, size;  // size: of a channel
  // One of these.
  const Sums* sums;
  WholeSums whole;
  GivenSums<A> given;
  double* parts;  // null, or where the sums of a divided batch go, and then slopes are not made
  const A *gamma, *mean, *variance;  // gamma: null for 1
  const Line<A>* lines;              // or null
  A eps, momentum;
  bool batch;  // the statistics are those of the batch
  A *gamma_grad, *beta_grad, *moving_mean, *moving_variance;
  OpReqType gamma_req, beta_req;
  Slope<A>* slopes;

  MXTRAIN_HD void operator()(int64_t c) const {
    const A inverse = 1 / std::sqrt(variance[c] + eps);
    const Sums of = given.first ? given.Of(c) : whole.at ? whole.Of(c) : sums[c];
    const A sum = static_cast<A>(of.first),
            n = whole.at ? static_cast<A>(whole.size()) : static_cast<A>(size),
            along = static_cast<A>(of.second * (given.first ? 1 : static_cast<double>(inverse)));
    if (gamma_req != OpReqType::kNullOp) Assign(gamma_req, gamma_grad, c, gamma ? along : A(0));
    if (beta_req != OpReqType::kNullOp) Assign(beta_req, beta_grad, c, sum);
    if (parts) {
      parts[c] = of.first;
      parts[channels + c] = of.second;
      if (c == 0) parts[2 * channels] = static_cast<double>(size);
      return;
    }
    const Line<A> line{mean[c], inverse * (gamma ? gamma[c] : A(1)), lines ? lines[c].shift : A(0)};
    slopes[c] = {line, inverse, batch ? sum / n : A(0), batch ? along / n : A(0)};
    if (batch && n > 0) {
      moving_mean[c] = momentum * moving_mean[c] + (A(1) - momentum) * mean[c];
      moving_variance[c] = momentum * moving_variance[c] + (A(1) - momentum) * variance[c];
    }
  }
};

// As Normalise.
template <typename T>
struct Differentiate {
  using A = AccumulatorOf<T>;
  using Element = typename Heads<T>::Element;
  const Slope<A>* slopes;
  Heads<T> heads;
  T *data_grad, *sum_grad;
  OpReqType data_req, sum_req;
  MXTRAIN_HD Slope<A> Of(int64_t channel) const { return slopes[channel]; }
  MXTRAIN_HD Element Read(int64_t at) const { return heads.Read(at); }
  MXTRAIN_HD void Write(int64_t at, const Slope<A>& s, const Element& e) const {
    const A g = heads.Gradient(e, s), normal = (A(e.x) - s.mean) * s.inverse;
    if (data_req != OpReqType::kNullOp)
      Assign(data_req, data_grad, at, s.scale * (g - s.mean_gradient - normal * s.mean_along));
    if (sum_req != OpReqType::kNullOp) Assign(sum_req, sum_grad, at, g);
  }

  static constexpr int kPack = kPackOf<T> / 2;
  using Pack = typename Heads<T>::template Pack<kPack>;
  bool Aligned() const { return heads.Aligned() && TakesPacks(data_grad) && TakesPacks(sum_grad); }
  MXTRAIN_HD Pack ReadPack(int64_t at) const { return heads.template ReadPack<kPack>(at); }
  MXTRAIN_HD void WritePack(int64_t at, const Slope<A>* of, const Pack& pack) const {
    using Elements = ChannelPack<T, kPack>;
    Elements data{}, sum{};
    if (data_req == OpReqType::kAddTo) data = Elements::At(data_grad + at);
    if (sum_req == OpReqType::kAddTo) sum = Elements::At(sum_grad + at);
    ForPack<kPack>([&](int k) {
      const Element e = heads.ElementOf(pack, k);
      const Slope<A>& s = of[k];
      const A g = heads.Gradient(e, s), normal = (A(e.x) - s.mean) * s.inverse;
      Put(data_req, s.scale * (g - s.mean_gradient - normal * s.mean_along), &data.v[k]);
      Put(sum_req, g, &sum.v[k]);
    });
    if (data_req != OpReqType::kNullOp) data.Put(data_grad + at);
    if (sum_req != OpReqType::kNullOp) sum.Put(sum_grad + at);
  }
};

// f of the elements first, first + step, ... of one channel, before `end`.
template <typename F>
MXTRAIN_HD inline void ForElementsOf(int64_t channel, int64_t first, int64_t end, int64_t step,
                                     const F& f) {
  // An element is several numbers, and more registers mean fewer threads.
  constexpr int kAhead = kLoadsAhead / 2;
  const auto of = f.Of(channel);
  int64_t at = first;
  for (; at + (kAhead - 1) * step < end; at += kAhead * step) {
    typename F::Element elements[kAhead];
    for (int k = 0; k < kAhead; ++k) elements[k] = f.Read(at + k * step);
    for (int k = 0; k < kAhead; ++k) f.Write(at + k * step, of, elements[k]);
  }
  for (; at < end; at += step) f.Write(at, of, f.Read(at));
}
// Planes of a channel, by teams.
template <typename F>
struct PlaneRow {
  ChannelView view;
  F f;
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t plane) const {
    const int64_t first = plane * view.inner;
    ForElementsOf(plane % view.channels, first + team.rank(), first + view.inner, team.size(), f);
  }
};
// Contiguous channels: some rows of one plane.
template <typename F>
struct ColumnPiece {
  static constexpr int64_t kRows = 16;
  ChannelView view;
  F f;
  MXTRAIN_HD void operator()(int64_t task) const {
    const int64_t channel = task % view.channels, first = task / view.channels * kRows;
    const int64_t end = first + kRows < view.outer ? first + kRows : view.outer;
    ForElementsOf(channel, first * view.channels + channel, end * view.channels, view.channels, f);
  }
};
// The same for kPack adjacent channels.
template <typename F>
struct ColumnPackPiece {
  static constexpr int kAhead = 2;
  ChannelView view;
  F f;
  int64_t rows;  // of a piece: many, so that what a channel needs is read seldom, if enough remain

  ColumnPackPiece(const ChannelView& v, const F& function)
      : view(v),
        f(function),
        rows(std::clamp<int64_t>(v.outer * (v.channels / F::kPack) / (int64_t{1} << 18), 16, 128)) {
  }
  int64_t pieces() const { return (view.outer + rows - 1) / rows * (view.channels / F::kPack); }

  MXTRAIN_HD void operator()(int64_t task) const {
    const int64_t packs = view.channels / F::kPack, channel = task % packs * F::kPack,
                  first = task / packs * rows;
    const int64_t last = first + rows < view.outer ? first + rows : view.outer;
    decltype(f.Of(channel)) of[F::kPack];
    ForPack<F::kPack>([&](int k) { of[k] = f.Of(channel + k); });
    const int64_t step = view.channels, end = last * step + channel;
    int64_t at = first * step + channel;
    for (; at + (kAhead - 1) * step < end; at += kAhead * step) {
      typename F::Pack elements[kAhead];
      ForPack<kAhead>([&](int a) { elements[a] = f.ReadPack(at + a * step); });
      ForPack<kAhead>([&](int a) { f.WritePack(at + a * step, of, elements[a]); });
    }
    for (; at < end; at += step) f.WritePack(at, of, f.ReadPack(at));
  }
};
// Planes too small for a team.
template <typename F>
struct EachElement {
  ChannelView view;
  F f;
  MXTRAIN_HD void operator()(int64_t at) const {
    f.Write(at, f.Of(view.ChannelOf(at)), f.Read(at));
  }
};
template <typename Device, typename F>
void ForElements(const Device& device, const ChannelView& view, const F& f) {
  constexpr int64_t kLargePlane = 16;
  if constexpr (Device::kType == DeviceType::kGPU) {
    if (InPacks(view, F::kPack) && f.Aligned()) {
      const ColumnPackPiece<F> piece(view, f);
      return Launch(device, piece.pieces(), piece);
    }
  }
  if (view.inner >= kLargePlane) {
    ForRows(device, view.outer * view.channels, view.inner, PlaneRow<F>{view, f});
  } else if (view.inner == 1) {
    Launch(device, (view.outer + ColumnPiece<F>::kRows - 1) / ColumnPiece<F>::kRows * view.channels,
           ColumnPiece<F>{view, f});
  } else {
    Launch(device, view.outer * view.channels * view.inner, EachElement<F>{view, f});
  }
}

inline ChannelView ViewOf(const BatchNormSettings& settings, const TShape& data, Layout layout) {
  return {data, ChannelAxis(settings, data.ndim()), layout};
}
// Sums, then a Line or Slope for every channel.
inline int64_t WorkspaceBytes(const ChannelView& view) {
  return BytesOfChannelSums<Sums>(view) +
         view.channels * static_cast<int64_t>(sizeof(Slope<double>));
}
template <typename V>
V* BehindSums(const ChannelView& view, const TBlob& workspace) {
  return reinterpret_cast<V*>(workspace.dptr<char>() + BytesOfChannelSums<Sums>(view));
}

template <typename Device>
class BatchNorm final : public Operator, public BatchSums {
 public:
  // `sums`: how many a divided batch takes; 0 without statistics of the batch.
  BatchNorm(const BatchNormSettings& settings, int64_t sums)
      : settings_(settings), activation_{settings.act}, gate_(GateOf(settings)), sums_(sums) {}

  void Forward(const ForwardArgs& args) override { ForwardBy(args, nullptr, nullptr); }
  void Backward(const BackwardArgs& args) override { BackwardBy(args, nullptr, nullptr); }

  int64_t NumForwardSums() const override { return sums_; }
  int64_t NumBackwardSums() const override { return sums_; }
  void SumForward(const ForwardArgs& args, std::span<double> sums) override {
    ForwardBy(args, sums.data(), nullptr);
  }
  void ForwardWith(const ForwardArgs& args, std::span<const double> sums) override {
    ForwardBy(args, nullptr, sums.data());
  }
  void SumBackward(const BackwardArgs& args, std::span<double> sums) override {
    BackwardBy(args, sums.data(), nullptr);
  }
  void BackwardWith(const BackwardArgs& args, std::span<const double> sums) override {
    BackwardBy(args, nullptr, sums.data());
  }

 private:
  // `parts`: where the sums of this part go, and then no more is done; `whole`: those of all parts.
  void ForwardBy(const ForwardArgs& args, double* parts, const double* whole) const {
    SwitchFloating(args.in_data[P::kData].type, "BatchNorm",
                   [&](auto tag) { ForwardOf<typename decltype(tag)::type>(args, parts, whole); });
  }
  void BackwardBy(const BackwardArgs& args, double* parts, const double* whole) const {
    SwitchFloating(args.in_data[P::kData].type, "BatchNorm",
                   [&](auto tag) { BackwardOf<typename decltype(tag)::type>(args, parts, whole); });
  }

  template <typename T>
  void ForwardOf(const ForwardArgs& args, double* parts, const double* whole) const {
    using A = AccumulatorOf<T>;
    const Device device{args.ctx.run_ctx};
    const ChannelView view =
        ViewOf(settings_, args.in_data[P::kData].shape, args.in_data[P::kData].layout);
    const bool saves = !args.ctx.saved.empty();
    const Distances<T> distances{view, args.in_data[P::kData].dptr<T>()};
    MakeLine<T> line{};
    line.distances = distances;
    line.whole = {whole, view.channels};
    if (OfBatch(args.ctx) && view.size() > 0 && !whole) {
      if (settings_.with_batch_sums && !parts) {
        const A* sums = args.in_data.back().dptr<A>();
        line.given = {sums, sums + view.channels};
      } else {
        line.sums = SumChannels<Sums>(device, view, distances, args.ctx.workspace);
      }
    }
    if (parts)
      return Launch(device, view.channels, WriteForwardSums<T>{distances, line.sums, parts});
    line.gamma = settings_.fix_gamma ? nullptr : args.in_data[P::kGamma].dptr<A>();
    line.beta = args.in_data[P::kBeta].dptr<A>();
    line.moving_mean = args.aux_states[P::kMovingMean].dptr<A>();
    line.moving_variance = args.aux_states[P::kMovingVariance].dptr<A>();
    line.eps = A(settings_.eps);
    line.saved_mean = saves ? args.ctx.saved[kSavedMean].dptr<A>() : nullptr;
    line.saved_variance = saves ? args.ctx.saved[kSavedVariance].dptr<A>() : nullptr;
    line.out_mean = args.out_data[P::kMean].dptr<A>();
    line.out_inverse = args.out_data[P::kInverseDeviation].dptr<A>();
    line.mean_req = args.req[P::kMean];
    line.inverse_req = args.req[P::kInverseDeviation];
    line.lines = saves && gate_ == GateBy::kLine ? args.ctx.saved[kSavedGate].dptr<Line<A>>()
                                                 : BehindSums<Line<A>>(view, args.ctx.workspace);
    Launch(device, view.channels, line);

    const T* sum = settings_.with_sum ? args.in_data[P::kSum].dptr<T>() : nullptr;
    uint8_t* mask =
        saves && gate_ == GateBy::kMask ? args.ctx.saved[kSavedGate].dptr<uint8_t>() : nullptr;
    if (args.req[P::kOutput] == OpReqType::kNullOp && !mask) return;
    ForElements(device, view,
                Normalise<T>{line.lines, distances.x, sum, activation_, mask,
                             args.out_data[P::kOutput].dptr<T>(), args.req[P::kOutput]});
  }

  template <typename T>
  void BackwardOf(const BackwardArgs& args, double* parts, const double* whole) const {
    using A = AccumulatorOf<T>;
    const Device device{args.ctx.run_ctx};
    const ChannelView view =
        ViewOf(settings_, args.in_data[P::kData].shape, args.in_data[P::kData].layout);
    Heads<T> heads{args.out_grad[P::kOutput].dptr<T>(),
                   args.in_data[P::kData].dptr<T>(),
                   activation_,
                   nullptr,
                   nullptr,
                   nullptr};
    if (gate_ == GateBy::kLine) heads.lines = args.ctx.saved[kSavedGate].dptr<Line<A>>();
    if (gate_ == GateBy::kOutput) heads.output = args.out_data[P::kOutput].dptr<T>();
    if (gate_ == GateBy::kMask) heads.mask = args.ctx.saved[kSavedGate].dptr<uint8_t>();
    MakeSlope<T> slope{};
    slope.size = view.size();
    slope.mean = args.ctx.saved[kSavedMean].dptr<A>();
    slope.variance = args.ctx.saved[kSavedVariance].dptr<A>();
    slope.whole = {whole, view.channels};
    slope.parts = parts;
    slope.channels = view.channels;
    if (settings_.gated_gradient) {
      slope.given = {args.out_grad[P::kMean].dptr<A>(),
                     args.out_grad[P::kInverseDeviation].dptr<A>()};
    } else if (!whole) {
      slope.sums =
          SumChannels<Sums>(device, view, GradientTerms<T>{heads, slope.mean}, args.ctx.workspace);
    }
    slope.gamma = settings_.fix_gamma ? nullptr : args.in_data[P::kGamma].dptr<A>();
    slope.lines = heads.lines;
    slope.eps = A(settings_.eps);
    slope.momentum = A(settings_.momentum);
    slope.batch = OfBatch(args.ctx);
    slope.gamma_grad = args.in_grad[P::kGamma].dptr<A>();
    slope.beta_grad = args.in_grad[P::kBeta].dptr<A>();
    slope.moving_mean = args.aux_states[P::kMovingMean].dptr<A>();
    slope.moving_variance = args.aux_states[P::kMovingVariance].dptr<A>();
    // With the sums of the whole batch, the first stage has written these gradients.
    slope.gamma_req = whole ? OpReqType::kNullOp : args.req[P::kGamma];
    slope.beta_req = whole ? OpReqType::kNullOp : args.req[P::kBeta];
    slope.slopes = BehindSums<Slope<A>>(view, args.ctx.workspace);
    Launch(device, view.channels, slope);
    if (parts) return;

    const OpReqType sum_req = settings_.with_sum ? args.req[P::kSum] : OpReqType::kNullOp;
    if (args.req[P::kData] == OpReqType::kNullOp && sum_req == OpReqType::kNullOp) return;
    T* sum_grad = settings_.with_sum ? args.in_grad[P::kSum].dptr<T>() : nullptr;
    ForElements(device, view,
                Differentiate<T>{slope.slopes, heads, args.in_grad[P::kData].dptr<T>(), sum_grad,
                                 args.req[P::kData], sum_req});
  }

  bool OfBatch(const OpContext& ctx) const { return ctx.is_train && !settings_.use_global_stats; }

  BatchNormSettings settings_;
  Activation activation_;
  GateBy gate_;
  int64_t sums_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  Plan plan = PlainPlan(base, request);
  const BatchNormSettings& settings = static_cast<const BatchNormProperty&>(base).settings();
  const TShape& shape = request.in[P::kData].shape;
  const Layout layout =
      ChannelAxis(settings, shape.ndim()) == 1 ? OfferedChannelsLast(request, shape) : Layout();
  LieAs(layout, base, request, &plan);
  plan.forward_workspace = WorkspaceBytes(ViewOf(settings, shape, layout));
  if (request.needs_backward) {
    plan.backward_workspace = plan.forward_workspace;
    const int64_t channel_bytes = request.in[P::kGamma].Bytes();
    plan.saved = {channel_bytes, channel_bytes};
    const GateBy gate = GateOf(settings);
    if (gate == GateBy::kLine) plan.saved.push_back(3 * channel_bytes);
    if (gate == GateBy::kMask) plan.saved.push_back(shape.Size());
    const bool given = settings.gated_gradient;
    plan.backward_reads = BackwardReads{{true, given, given},
                                        {true, !settings.fix_gamma, false},
                                        {gate == GateBy::kOutput, false, false}};
    plan.backward_reads->in_data.resize(request.in.size());
  }
  const bool of_batch = request.is_train && !settings.use_global_stats && shape.Size() > 0;
  const int64_t sums = of_batch ? NumChannelSums(request.in[P::kGamma].shape.Size()) : 0;
  plan.make = [settings, sums] { return std::make_unique<BatchNorm<Device>>(settings, sums); };
  return plan;
}

}  // namespace mxtrain::batch_norm

MXTRAIN_KERNELS(batch_norm, Device, registry) {
  using namespace mxtrain;
  for (const char* op : {"BatchNorm", "_BatchNormActivation"})
    registry.AddKernel(LastKernel<Device>(op, batch_norm::MakePlan<Device>));
}
