// SPDX-License-Identifier: Apache-2.0
#pragma once
// The reference loops of Pooling; a maximum saves its place in the image for the gradient. Written
// once for both devices: Device is OnCpu or OnGpu. A GPU thread processes several channels at once
// where they are contiguous.
#include <cmath>
#include <limits>
#include <memory>

#include "mxtrain/operator/channel_sums.h"
#include "mxtrain/operator/fast_divider.h"
#include "mxtrain/operator/plans.h"
#include "mxtrain/operator/rows.h"
#include "mxtrain/operators/pooling/pooling.h"

namespace mxtrain::pooling {

template <typename T>
MXTRAIN_HD AccumulatorOf<T> Lowest() {
  if constexpr (std::is_same_v<T, float16>) {
    return -65504.0f;
  } else {
    return std::numeric_limits<AccumulatorOf<T>>::lowest();
  }
}
template <typename A>
MXTRAIN_HD A Power(A x, int p) {
  return p == 0 ? A(1) : p == 1 ? x : p == 2 ? x * x : x * x * x;
}

// The windows of a pooling in numbers.
struct Windows : PoolingAxes {
  int type, p;
  bool include_pad;
  int64_t step;  // between adjacent cells of an image: 1, or the channels for channels last

  Windows(const PoolingParam& param, const TBlob& data, const TBlob& output)
      : PoolingAxes(AxesOf(param, data.shape, output.shape)),
        type(param.pool_type),
        p(param.p_value.value_or(0)),
        include_pad(param.count_include_pad.value_or(true)),
        step(data.layout.plain() ? 1 : data.shape[1]) {}

  // The position of an element. `image`: a channel of an example; for channels last, an example,
  // and `channel` selects the channel.
  struct Place {
    int64_t image, cell, channel;
  };
  MXTRAIN_HD Place PlaceOf(int64_t at, int64_t count) const {
    return {at / step / count, at / step % count, at % step};
  }
  // The first cell of the image of `place`, among images of `count` cells.
  MXTRAIN_HD int64_t ImageOf(const Place& place, int64_t count) const {
    return place.image * count * step + place.channel;
  }

  MXTRAIN_HD int64_t Divisor(int64_t z, int64_t y, int64_t x) const {
    return type == PoolingParam::kSum ? 1 : PoolingCells(include_pad, *this, z, y, x);
  }
};

// Parts of a fold over the cells of a window, in scan order: fold(value, cell).
template <typename A, typename P = int64_t>
struct FoldMax {
  A best;
  P place = -1;
  MXTRAIN_HD void operator()(A value, P cell) {
    if (place >= 0 && !Beats(value, best)) return;
    best = value;
    place = cell;
  }
};
template <typename A>
struct FoldSum {
  A sum = 0;
  MXTRAIN_HD void operator()(A value, int64_t) { sum += value; }
};
template <typename A>
struct FoldPowers {
  int p;
  A sum = 0;
  MXTRAIN_HD void operator()(A value, int64_t) { sum += Power(std::abs(value), p); }
};

template <typename A>
MXTRAIN_HD A Root(A sum, int p) {
  return p == 1 ? sum : p == 2 ? std::sqrt(sum) : std::cbrt(sum);
}

template <typename T>
struct OutputElement {
  using A = AccumulatorOf<T>;
  Windows windows;
  const T* data;
  T* out;
  int32_t* places;  // of maxima in their images, -1 in an empty window; null: not wanted
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const auto place = windows.PlaceOf(at, windows.windows());
    const int64_t x = place.cell % windows.w.out, y = place.cell / windows.w.out % windows.h.out,
                  z = place.cell / windows.w.out / windows.h.out;
    const T* image = data + windows.ImageOf(place, windows.cells());
    if (windows.type == PoolingParam::kMax) {
      FoldMax<A> fold{Lowest<T>()};
      ForCells(image, z, y, x, fold);
      if (places) places[at] = static_cast<int32_t>(fold.place);
      Assign(req, out, at, fold.best);
    } else if (windows.type == PoolingParam::kLp) {
      FoldPowers<A> fold{windows.p};
      ForCells(image, z, y, x, fold);
      Assign(req, out, at, Root(fold.sum, windows.p));
    } else {
      FoldSum<A> fold;
      ForCells(image, z, y, x, fold);
      Assign(req, out, at, fold.sum / static_cast<A>(windows.Divisor(z, y, x)));
    }
  }
  template <typename Fold>
  MXTRAIN_HD void ForCells(const T* image, int64_t z, int64_t y, int64_t x, Fold& fold) const {
    for (int64_t h = windows.d.First(z); h < windows.d.Last(z); ++h) {
      for (int64_t i = windows.h.First(y); i < windows.h.Last(y); ++i) {
        for (int64_t j = windows.w.First(x); j < windows.w.Last(x); ++j) {
          const int64_t cell = (h * windows.h.in + i) * windows.w.in + j;
          fold(A(image[cell * windows.step]), cell);
        }
      }
    }
  }
};

// d norm / d x = sign(x) (|x| / norm)^(p - 1); 0 at the kink.
template <typename A>
MXTRAIN_HD A NormSlope(A x, A length, int p) {
  if (x == 0 || length == 0) return 0;
  return std::copysign(Power(std::abs(x) / length, p - 1), x);
}

template <typename T>
struct GradientElement {
  using A = AccumulatorOf<T>;
  Windows windows;
  const T *head, *data, *norm;
  const int32_t* places;
  T* out;
  OpReqType req;

  template <typename Team>
  MXTRAIN_HD void operator()(const Team&, int64_t at) const {
    const PoolingAxis &d = windows.d, &h = windows.h, &w = windows.w;
    const auto [image, cell, channel] = windows.PlaceOf(at, windows.cells());
    const int64_t first = windows.ImageOf({image, cell, channel}, windows.windows()),
                  j = cell % w.in, i = cell / w.in % h.in, layer = cell / w.in / h.in;
    A sum = 0;
    for (int64_t z = d.FirstWindow(layer); z < d.LastWindow(layer); ++z) {
      for (int64_t y = h.FirstWindow(i); y < h.LastWindow(i); ++y) {
        for (int64_t x = w.FirstWindow(j); x < w.LastWindow(j); ++x)
          sum += Share(at, cell, first + ((z * h.out + y) * w.out + x) * windows.step, z, y, x);
      }
    }
    Assign(req, out, at, sum);
  }
  // Of the head gradient of one window.
  MXTRAIN_HD A Share(int64_t at, int64_t cell, int64_t window, int64_t z, int64_t y,
                     int64_t x) const {
    if (windows.type == PoolingParam::kMax) return places[window] == cell ? A(head[window]) : A(0);
    if (windows.type == PoolingParam::kLp)
      return A(head[window]) * NormSlope(A(data[at]), A(norm[window]), windows.p);
    return A(head[window]) / static_cast<A>(windows.Divisor(z, y, x));
  }
};

// Packs of adjacent channels of channels-last images, in storage order, found by numbers of 32
// bits: a GPU has no instruction for divisions, and those of 64 bits are long functions.
struct PackPlaces {
  FastDivider packs, width, height, depth;

  // Of images with this many cells along each axis.
  PackPlaces(int64_t packs_of_channels, int64_t z, int64_t y, int64_t x)
      : packs(packs_of_channels), width(x), height(y), depth(z) {}

  struct Place {
    uint32_t image, z, y, x, pack;
  };
  MXTRAIN_HD Place Of(int64_t index) const {
    Place place;
    packs.DivideSmall(static_cast<uint32_t>(index), &place.image, &place.pack);
    width.DivideSmall(place.image, &place.image, &place.x);
    height.DivideSmall(place.image, &place.image, &place.y);
    depth.DivideSmall(place.image, &place.image, &place.z);
    return place;
  }
};

// Whether the arrays of a pooling, of at most `most` elements each, consist of packs that
// PackPlaces can find.
inline bool InPacks(const Windows& windows, int width, int64_t most) {
  return windows.step % width == 0 &&
         FastDivider::Small(most + windows.d.pad + windows.h.pad + windows.w.pad);
}

template <typename T>
struct OutputPack {
  static constexpr int kPack = kPackOf<T>;
  using A = AccumulatorOf<T>;
  using Elements = ChannelPack<T, kPack>;
  using Places = ChannelPack<int32_t, kPack>;
  OutputElement<T> one;
  PackPlaces packs;  // of the output

  explicit OutputPack(const OutputElement<T>& element)
      : one(element),
        packs(one.windows.step / kPack, one.windows.d.out, one.windows.h.out, one.windows.w.out) {}
  bool Fits(int64_t most) const {
    return InPacks(one.windows, kPack, most) && TakesPacks(one.data) && TakesPacks(one.out) &&
           reinterpret_cast<uintptr_t>(one.places) % sizeof(Places) == 0;
  }

  MXTRAIN_HD void operator()(int64_t index) const {
    const Windows& windows = one.windows;
    const PackPlaces::Place place = packs.Of(index);
    const int64_t at = index * kPack;
    Elements result{};
    if (one.req == OpReqType::kAddTo) result = Elements::At(one.out + at);
    if (windows.type == PoolingParam::kMax) {
      FoldMax<A, int32_t> folds[kPack];
      ForPack<kPack>([&](int k) { folds[k].best = Lowest<T>(); });
      ForCells(place, folds);
      Places found;
      ForPack<kPack>([&](int k) {
        found.v[k] = folds[k].place;
        Assign(one.req, result.v, k, folds[k].best);
      });
      if (one.places) found.Put(one.places + at);
    } else if (windows.type == PoolingParam::kLp) {
      FoldPowers<A> folds[kPack];
      ForPack<kPack>([&](int k) { folds[k].p = windows.p; });
      ForCells(place, folds);
      ForPack<kPack>([&](int k) { Assign(one.req, result.v, k, Root(folds[k].sum, windows.p)); });
    } else {
      FoldSum<A> folds[kPack];
      ForCells(place, folds);
      const auto divisor = static_cast<A>(windows.Divisor(place.z, place.y, place.x));
      ForPack<kPack>([&](int k) { Assign(one.req, result.v, k, folds[k].sum / divisor); });
    }
    result.Put(one.out + at);
  }
  template <typename Fold>
  MXTRAIN_HD void ForCells(const PackPlaces::Place& place, Fold (&folds)[kPack]) const {
    const Windows& windows = one.windows;
    const T* image =
        one.data + place.image * windows.cells() * windows.step + int64_t{place.pack} * kPack;
    for (int64_t h = windows.d.First(place.z); h < windows.d.Last(place.z); ++h) {
      for (int64_t i = windows.h.First(place.y); i < windows.h.Last(place.y); ++i) {
        for (int64_t j = windows.w.First(place.x); j < windows.w.Last(place.x); ++j) {
          const int64_t cell = (h * windows.h.in + i) * windows.w.in + j;
          const Elements elements = Elements::At(image + cell * windows.step);
          ForPack<kPack>([&](int k) { folds[k](A(elements.v[k]), static_cast<int32_t>(cell)); });
        }
      }
    }
  }
};

template <typename T>
struct GradientPack {
  static constexpr int kPack = kPackOf<T>;
  using A = AccumulatorOf<T>;
  using Elements = ChannelPack<T, kPack>;
  using Places = ChannelPack<int32_t, kPack>;
  GradientElement<T> one;
  PackPlaces packs;  // of the data
  FastDivider depth_stride, height_stride, width_stride;

  explicit GradientPack(const GradientElement<T>& element)
      : one(element),
        packs(one.windows.step / kPack, one.windows.d.in, one.windows.h.in, one.windows.w.in),
        depth_stride(one.windows.d.stride),
        height_stride(one.windows.h.stride),
        width_stride(one.windows.w.stride) {}
  bool Fits(int64_t most) const {
    return InPacks(one.windows, kPack, most) && TakesPacks(one.head) && TakesPacks(one.data) &&
           TakesPacks(one.norm) && TakesPacks(one.out) &&
           reinterpret_cast<uintptr_t>(one.places) % sizeof(Places) == 0;
  }

  MXTRAIN_HD void operator()(int64_t index) const {
    const Windows& windows = one.windows;
    const PoolingAxis &d = windows.d, &h = windows.h, &w = windows.w;
    const PackPlaces::Place place = packs.Of(index);
    const int64_t at = index * kPack, first = place.image * windows.windows() * windows.step +
                                              int64_t{place.pack} * kPack;
    const auto cell = static_cast<int32_t>((place.z * h.in + place.y) * w.in + place.x);
    Elements data{}, result{};
    if (windows.type == PoolingParam::kLp) data = Elements::At(one.data + at);
    if (one.req == OpReqType::kAddTo) result = Elements::At(one.out + at);
    const Range over_z(d, depth_stride, place.z), over_y(h, height_stride, place.y),
        over_x(w, width_stride, place.x);
    A sums[kPack] = {};
    for (int64_t z = over_z.begin; z < over_z.end; ++z) {
      for (int64_t y = over_y.begin; y < over_y.end; ++y) {
        for (int64_t x = over_x.begin; x < over_x.end; ++x)
          AddShares(data, cell, first + ((z * h.out + y) * w.out + x) * windows.step, z, y, x,
                    sums);
      }
    }
    ForPack<kPack>([&](int k) { Assign(one.req, result.v, k, sums[k]); });
    result.Put(one.out + at);
  }

 private:
  // The windows that may contain a cell: PoolingAxis::FirstWindow, LastWindow.
  struct Range {
    int64_t begin = 0, end = 0;
    MXTRAIN_HD Range(const PoolingAxis& axis, const FastDivider& stride, uint32_t cell) {
      const int64_t padded = cell + axis.pad;
      uint32_t quotient = 0, remainder = 0;
      if (padded >= axis.kernel) {
        stride.DivideSmall(static_cast<uint32_t>(padded - axis.kernel), &quotient, &remainder);
        begin = int64_t{quotient} + 1;
      }
      stride.DivideSmall(static_cast<uint32_t>(padded), &quotient, &remainder);
      end = int64_t{quotient} + 1 < axis.out ? int64_t{quotient} + 1 : axis.out;
    }
  };
  MXTRAIN_HD void AddShares(const Elements& data, int32_t cell, int64_t window, int64_t z,
                            int64_t y, int64_t x, A* sums) const {
    const Windows& windows = one.windows;
    const Elements heads = Elements::At(one.head + window);
    if (windows.type == PoolingParam::kMax) {
      const Places places = Places::At(one.places + window);
      ForPack<kPack>([&](int k) { sums[k] += places.v[k] == cell ? A(heads.v[k]) : A(0); });
    } else if (windows.type == PoolingParam::kLp) {
      const Elements norms = Elements::At(one.norm + window);
      ForPack<kPack>([&](int k) {
        sums[k] += A(heads.v[k]) * NormSlope(A(data.v[k]), A(norms.v[k]), windows.p);
      });
    } else {
      const auto divisor = static_cast<A>(windows.Divisor(z, y, x));
      ForPack<kPack>([&](int k) { sums[k] += A(heads.v[k]) / divisor; });
    }
  }
};

// Means or sums of whole images, by teams: a GPU thread for each would read a whole image.
template <typename T>
struct WholeImages {
  using A = AccumulatorOf<T>;
  OutputElement<T> one;

  bool Fits() const {
    const Windows& windows = one.windows;
    const auto whole = [](const PoolingAxis& axis) {
      return axis.out == 1 && axis.First(0) == 0 && axis.Last(0) == axis.in;
    };
    return (windows.type == PoolingParam::kAvg || windows.type == PoolingParam::kSum) &&
           whole(windows.d) && whole(windows.h) && whole(windows.w);
  }
  MXTRAIN_HD A ResultOf(A sum) const { return sum / static_cast<A>(one.windows.Divisor(0, 0, 0)); }

  // A channel of an example, its cells side by side.
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t at) const {
    const int64_t cells = one.windows.cells();
    A sum = 0;
    for (int64_t cell = team.rank(); cell < cells; cell += team.size())
      sum += A(one.data[at * cells + cell]);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) Assign(one.req, one.out, at, ResultOf(sum));
  }
};

// The same for channels last. As in ChannelPackPart, members have packs side by side, and cells.
template <typename T>
struct WholeImagePacks {
  static constexpr int kPack = kPackOf<T>, kMostAcross = 32;
  using A = AccumulatorOf<T>;
  using Elements = ChannelPack<T, kPack>;
  WholeImages<T> whole;
  int across;

  WholeImagePacks(const WholeImages<T>& w, int members)
      : whole(w), across(static_cast<int>(std::min<int64_t>({kMostAcross, members, packs()}))) {}
  bool Fits() const {
    const OutputElement<T>& one = whole.one;
    return one.windows.step % kPack == 0 && TakesPacks(one.data) && TakesPacks(one.out);
  }
  MXTRAIN_HD int64_t packs() const { return whole.one.windows.step / kPack; }
  MXTRAIN_HD int64_t groups() const { return (packs() + across - 1) / across; }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const OutputElement<T>& one = whole.one;
    const int64_t step = one.windows.step, cells = one.windows.cells(), image = task / groups(),
                  group = task % groups() * across, pack = group + team.rank() % across;
    const int lane = team.rank() / across, lanes = team.size() / across;
    A sums[kPack] = {};
    if (lane < lanes && pack < packs()) {
      const T* const from = one.data + image * cells * step + pack * kPack;
      for (int64_t cell = lane; cell < cells; cell += lanes) {
        const Elements elements = Elements::At(from + cell * step);
        ForPack<kPack>([&](int k) { sums[k] += A(elements.v[k]); });
      }
    }
    SumColumns(team, across, sums, [&](int column, int k, A sum) {
      if (group + column < packs())
        Assign(one.req, one.out, image * step + (group + column) * kPack + k, whole.ResultOf(sum));
    });
  }
};

// False if the windows are not whole images.
template <typename Device, typename T>
bool PoolWhole(const Device& device, const OutputElement<T>& element, int64_t outputs) {
  const WholeImages<T> whole{element};
  const int64_t step = element.windows.step;
  if (outputs == 0 || !whole.Fits()) return false;
  if (step == 1) {
    ForRows(device, outputs, element.windows.cells(), whole);
    return true;
  }
  const WholeImagePacks<T> packs(whole, MembersOf<Device>());
  if (!packs.Fits()) return false;
  ForRows(device, outputs / step * packs.groups(), kLongRow, packs);
  return true;
}

// The pooling of n elements: in packs on a GPU, if their arrays allow it. `most`: elements of the
// larger array.
template <typename Pack, typename Device, typename Element>
void ForEach(const Device& device, int64_t n, int64_t most, const Element& element) {
  if constexpr (Device::kType == DeviceType::kGPU) {
    const Pack pack(element);
    if (pack.Fits(most)) return Launch(device, n / Pack::kPack, pack);
  }
  ForColumns(device, n, element.windows.window(), element);
}

template <typename Device>
class PoolingReference final : public Operator {
 public:
  explicit PoolingReference(const PoolingParam& param) : param_(param) {}

  void Forward(const ForwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Windows windows(param_, args.in_data[0], args.out_data[0]);
    int32_t* places = args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<int32_t>();
    SwitchFloating(args.in_data[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      const Device device{args.ctx.run_ctx};
      const int64_t outputs = args.out_data[0].Size();
      const OutputElement<T> element{windows, args.in_data[0].dptr<T>(), args.out_data[0].dptr<T>(),
                                     places, args.req[0]};
      if constexpr (Device::kType == DeviceType::kGPU) {
        if (PoolWhole(device, element, outputs)) return;
      }
      ForEach<OutputPack<T>>(device, outputs, std::max(outputs, args.in_data[0].Size()), element);
    });
  }

  void Backward(const BackwardArgs& args) override {
    if (args.req[0] == OpReqType::kNullOp) return;
    const Windows windows(param_, args.in_grad[0], args.out_grad[0]);
    const int32_t* places = args.ctx.saved.empty() ? nullptr : args.ctx.saved[0].dptr<int32_t>();
    SwitchFloating(args.in_grad[0].type, "Pooling", [&](auto tag) {
      using T = typename decltype(tag)::type;
      ForEach<GradientPack<T>>(
          Device{args.ctx.run_ctx}, args.in_grad[0].Size(),
          std::max(args.out_grad[0].Size(), args.in_grad[0].Size()),
          GradientElement<T>{windows, args.out_grad[0].dptr<T>(), args.in_data[0].dptr<T>(),
                             args.out_data[0].dptr<T>(), places, args.in_grad[0].dptr<T>(),
                             args.req[0]});
    });
  }

 private:
  PoolingParam param_;
};

template <typename Device>
Expected<Plan, Refusal> MakePlan(const OperatorProperty& base, const PlanRequest& request,
                                 Backend&) {
  const PoolingParam& param = static_cast<const PoolingProperty&>(base).param();
  const int64_t cells = request.in[0].shape.Product(2, request.in[0].shape.ndim());
  if (request.needs_backward && param.pool_type == PoolingParam::kMax &&
      cells > std::numeric_limits<int32_t>::max()) {
    return Refusal{
        format("{} cells of an image; the gradient of a maximum takes at most 2^31 - 1", cells)};
  }
  Plan plan = PlainPlan(base, request);
  LieAs(OfferedChannelsLast(request, request.in[0].shape), base, request, &plan);
  if (request.needs_backward && param.pool_type == PoolingParam::kMax) {
    plan.saved = {request.out[0].shape.Size() * static_cast<int64_t>(sizeof(int32_t))};
    plan.backward_reads = BackwardReads{{true}, {false}, {false}};
  }
  plan.make = [param] { return std::make_unique<PoolingReference<Device>>(param); };
  return plan;
}

}  // namespace mxtrain::pooling

MXTRAIN_KERNELS(pooling, Device, registry) {
  using namespace mxtrain;
  registry.AddKernel(LastKernel<Device>("Pooling", pooling::MakePlan<Device>));
}
