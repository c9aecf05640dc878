// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums over the channels of an array, for biases and batch normalization. Written once for both
// devices: Device is OnCpu or OnGpu.
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/operator/column_sums.h"
#include "mxtrain/operator/written_out.h"

namespace mxtrain {

// An array viewed as [outer, channels, inner] in storage order: plain, or, if axis 1 holds the
// channels, channels last.
struct ChannelView {
  int64_t outer = 0, channels = 0, inner = 0;

  ChannelView() = default;
  ChannelView(int64_t o, int64_t c, int64_t i) : outer(o), channels(c), inner(i) {}
  ChannelView(const TShape& shape, int axis, Layout layout = {})
      : outer(shape.Product(0, axis)),
        channels(shape[axis]),
        inner(shape.Product(axis + 1, shape.ndim())) {
    if (layout.plain()) return;
    MXTRAIN_ASSERT(axis == 1 && ChannelsLast(layout));
    outer *= inner;
    inner = 1;
  }
  MXTRAIN_HD int64_t size() const { return outer * inner; }  // of one channel
  MXTRAIN_HD int64_t ChannelOf(int64_t place) const { return place / inner % channels; }
};

// Adjacent elements of an array that a GPU loads or stores at once, 16 bytes where there are so
// many.
template <typename T, int kWidth>
struct alignas(sizeof(T) * kWidth) ChannelPack {
  T v[kWidth];
  MXTRAIN_HD static const ChannelPack& At(const T* from) {
    return *reinterpret_cast<const ChannelPack*>(from);
  }
  MXTRAIN_HD void Put(T* to) const { *reinterpret_cast<ChannelPack*>(to) = *this; }
};
// Channels of T that a GPU thread processes together, if they are contiguous.
template <typename T>
inline constexpr int kPackOf = 16 / sizeof(T);
// Whether an array of such packs may start there; also if it is absent.
inline bool TakesPacks(const void* data) {
  return reinterpret_cast<uintptr_t>(data) % 16 == 0;
}
// Whether arrays in this view consist of packs of channels.
inline bool InPacks(const ChannelView& view, int width) {
  return view.inner == 1 && view.channels % width == 0;
}

namespace detail {

// How the elements of each channel are divided into slices.
inline Slices SlicesOf(const ChannelView& view) {
  return view.inner > 1 ? Slices(view.channels, view.size())
                        : Slices::OfColumns(view.channels, view.size());
}

// The elements [begin, end) of a channel with stride `step`, without a division per element.
class ChannelWalk {
 public:
  MXTRAIN_HD ChannelWalk(const ChannelView& view, int64_t channel, int64_t begin, int64_t end,
                         int64_t step)
      : view_(view), channel_(channel), at_(begin), end_(end), step_(step) {
    outer_ = begin / view.inner, inner_ = begin % view.inner;
    step_outer_ = step / view.inner, step_inner_ = step % view.inner;
  }
  MXTRAIN_HD bool Done() const { return at_ >= end_; }
  MXTRAIN_HD bool Has(int64_t count) const {
    return at_ + (count - 1) * step_ < end_;
  }  // so many more
  MXTRAIN_HD int64_t place() const {
    return (outer_ * view_.channels + channel_) * view_.inner + inner_;
  }
  MXTRAIN_HD void Next() {
    at_ += step_;
    outer_ += step_outer_;
    inner_ += step_inner_;
    if (inner_ >= view_.inner) {
      inner_ -= view_.inner;
      ++outer_;
    }
  }

 private:
  ChannelView view_;
  int64_t channel_, at_, end_, step_;
  int64_t outer_, inner_, step_outer_, step_inner_;
};

template <typename V, typename F>
struct ChannelPart {
  ChannelView view;
  Slices slices;
  F term;
  V* parts;  // [channels, slices]
  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    // If the elements of a channel are not contiguous, adjacent tasks process adjacent channels.
    const int64_t channel = view.inner > 1 ? task / slices.count : task % view.channels;
    const int64_t slice = view.inner > 1 ? task % slices.count : task / view.channels;
    V sum{};
    const auto of = term.Of(channel);
    ChannelWalk walk(view, channel, slices.Begin(slice) + team.rank(), slices.Begin(slice + 1),
                     team.size());
    while (walk.Has(kLoadsAhead)) {
      V terms[kLoadsAhead];
      for (V& t : terms) {
        t = term(walk.place(), of);
        walk.Next();
      }
      for (const V& t : terms) sum = sum + t;
    }
    for (; !walk.Done(); walk.Next()) sum = sum + term(walk.place(), of);
    sum = team.Fold(sum, AddBoth{});
    if (team.rank() == 0) parts[channel * slices.count + slice] = sum;
  }
};

// The same for contiguous channels, by the largest teams. A member adds the elements of a pack in
// every so many rows of a slice; beside it are members for adjacent packs, and for other rows of
// the same pack. The parts are those of single channels.
template <typename V, typename F>
struct ChannelPackPart {
  static constexpr int kMostAcross = 32;  // read whole cache lines
  static constexpr int kThreads = 256;    // of a block
  ChannelView view;
  int across;  // packs side by side
  Slices slices;
  F term;
  V* parts;

  // `members`: of the largest teams, or fewer.
  ChannelPackPart(const ChannelView& v, int members, const F& f, V* to)
      : view(v),
        across(static_cast<int>(
            std::max<int64_t>(1, std::min<int64_t>({kMostAcross, members, packs()})))),
        slices(Slices::OfColumns(groups() * kThreads, v.size())),
        term(f),
        parts(to) {}
  MXTRAIN_HD int64_t packs() const { return view.channels / F::kPack; }
  MXTRAIN_HD int64_t groups() const { return (packs() + across - 1) / across; }
  int64_t tasks() const { return groups() * slices.count; }

  template <typename Team>
  MXTRAIN_HD void operator()(const Team& team, int64_t task) const {
    const int64_t group = task % groups() * across, slice = task / groups(),
                  pack = group + team.rank() % across;
    const int lane = team.rank() / across, lanes = team.size() / across;
    V sums[F::kPack] = {};
    if (lane < lanes && pack < packs())
      AddSlice(slices.Begin(slice) + lane, slices.Begin(slice + 1), lanes, pack * F::kPack, sums);
    SumColumns(team, across, sums, [&](int column, int k, const V& sum) {
      const int64_t at = group + column;
      if (at < packs()) parts[(at * F::kPack + k) * slices.count + slice] = sum;
    });
  }

 private:
  // More packs need more registers than there are.
  static constexpr int kAhead = kLoadsAhead / 2;

  MXTRAIN_HD void AddSlice(int64_t row, int64_t end, int step, int64_t first, V* sums) const {
    decltype(term.Of(first)) of[F::kPack];
    ForPack<F::kPack>([&](int k) { of[k] = term.Of(first + k); });
    typename F::Pack elements[kAhead];
    for (; row + (kAhead - 1) * step < end; row += kAhead * step) {
      ForPack<kAhead>(
          [&](int a) { elements[a] = term.ReadPack((row + a * step) * view.channels + first); });
      // A few terms are added before they become a V, which may be wider and slower.
      ForPack<F::kPack>([&](int k) {
        auto few = term.Term(elements[0], k, of[k]);
        ForPack<kAhead - 1>([&](int a) { few = few + term.Term(elements[a + 1], k, of[k]); });
        sums[k] = sums[k] + few;
      });
    }
    for (; row < end; row += step) {
      elements[0] = term.ReadPack(row * view.channels + first);
      ForPack<F::kPack>([&](int k) { sums[k] = sums[k] + term.Term(elements[0], k, of[k]); });
    }
  }
};

}  // namespace detail

// Size in bytes of the scratch space of SumChannels.
template <typename V>
int64_t BytesOfChannelSums(const ChannelView& view) {
  return (detail::SlicesOf(view).count + 1) * view.channels * static_cast<int64_t>(sizeof(V));
}
// The sum of term(place, of), of type V, over the elements of every channel, where of =
// term.Of(channel). The result [channels] is at the start of `workspace`, an array of bytes; the
// function returns its address.
//
// A term may also read kPack adjacent places at once: ReadPack(place) returns a Pack, Term(pack, k,
// of) is that of place + k, of a type in which a few terms are added and which becomes a V, and
// Aligned() says whether its arrays allow it.
template <typename V, typename Device, typename F>
const V* SumChannels(const Device& device, const ChannelView& given, const F& term,
                     const TBlob& workspace) {
  MXTRAIN_ASSERT(BytesOfChannelSums<V>(given) <= workspace.Size());
  V* const scratch = workspace.dptr<V>();
  const ChannelView view = given.size() > 0 ? given : ChannelView(0, given.channels, 1);
  const Slices slices = detail::SlicesOf(view);
  const detail::ChannelPart<V, F> part{view, slices, term, scratch + view.channels};
  const int64_t tasks = view.channels * slices.count;
  if constexpr (Device::kType == DeviceType::kGPU && requires { F::kPack; }) {
    if (InPacks(view, F::kPack) && term.Aligned()) {
      const detail::ChannelPackPart<V, F> packs(view, MembersOf<Device>(), term, part.parts);
      MXTRAIN_ASSERT(packs.slices.count <= slices.count);
      ForRows(device, packs.tasks(), kLongRow, packs);
      // Many parts by blocks: a warp would wait for memory too often.
      ForRows(device, view.channels, packs.slices.count >= 128 ? kLongRow : 0,
              JoinParts<V, detail::StoreSum<V>>{packs.slices.count, part.parts, {scratch}});
      return scratch;
    }
  }
  if (view.inner > 1) {
    ForRows(device, tasks, slices.longest(), part);
  } else {
    ForColumns(device, tasks, slices.longest(), part);
  }
  SumParts<V>(device, view.channels, slices.count, part.parts, scratch);
  return scratch;
}

}  // namespace mxtrain
