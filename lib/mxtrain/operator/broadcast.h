// SPDX-License-Identifier: Apache-2.0
#pragma once
// Map over broadcast arrays: out[i] = f(a[i], b[i], ...), where each input is repeated along its
// axes of length 1. Written once for all devices. On the CPU inputs that are repeated are gathered
// block by block into the first-level cache, or are a constant over long runs, so that the loop
// that computes is always the one of elementwise.h: contiguous and vectorized.
#include <tuple>
#include <utility>

#include "mxtrain/operator/broadcast_space.h"
#include "mxtrain/operator/elementwise.h"

namespace mxtrain {

// A plain array of elements of T, of the rank of the output.
template <typename T>
struct Broadcast {
  using Element = T;
  const T* data;
  TShape shape;

  Broadcast(const TBlob& blob) : data(static_cast<const T*>(blob.data)), shape(blob.shape) {}
  Broadcast(const T* elements, const TShape& their_shape) : data(elements), shape(their_shape) {}
};

namespace detail {

inline constexpr int64_t kBroadcastBlock = 512;  // elements of each input
inline constexpr int64_t kLeastRun = 64;  // along the last axis; gathering shorter ones is faster

template <int kArrays>
int64_t RunLength(const BroadcastSpace<kArrays>& space) {
  return space.length(space.ndim() - 1);
}
template <int kArrays>
bool HasRuns(const BroadcastSpace<kArrays>& space, int which, int64_t stride) {
  return RunLength(space) >= kLeastRun && space.stride(space.ndim() - 1, which) == stride;
}

// One input in the loop over blocks.
template <typename T>
struct BroadcastBlock {
  alignas(64) T values[kBroadcastBlock];
  int64_t held = -1;  // phase in the period of what `values` holds; -1: nothing that can be reused
  int64_t count = 0;

  template <int kArrays>
  const T* Load(const BroadcastSpace<kArrays>& space, int which, const T* data, int64_t begin,
                int64_t n) {
    if (space.Whole(which)) return data + begin;
    if (HasRuns(space, which, 1)) return data + space.at(begin)[static_cast<size_t>(which)];
    const int64_t period = space.period(which);
    const int64_t phase = period > 0 ? begin % period : -1;
    if (phase >= 0 && phase == held && n <= count) return values;
    GatherBroadcast(space, which, data, begin, n, values);
    held = phase;
    count = n;
    return values;
  }
};

// A block length at which inputs with a short period begin with the same phase.
template <int kArrays>
int64_t BlockLength(const BroadcastSpace<kArrays>& space) {
  for (int a = 0; a < kArrays; ++a) {
    const int64_t period = space.period(a);
    if (period > 1 && period <= kBroadcastBlock && !space.Whole(a))
      return kBroadcastBlock / period * period;
  }
  return kBroadcastBlock;
}

// The inputs of a loop over blocks of `space`, for one thread.
template <typename... In>
class BroadcastBlocks {
 public:
  using Space = BroadcastSpace<sizeof...(In)>;
  BroadcastBlocks(const Space& space, const In*... in)
      : space_(space), length_(BlockLength(space)), run_(RunLength(space)), in_(in...) {
    for (int a = 0; a < static_cast<int>(sizeof...(In)); ++a)
      splits_ = splits_ || (!space.Whole(a) && HasRuns(space, a, 1));
  }

  // body(begin, n, pointer to the block of each input...) for all blocks of [begin, end).
  template <typename Body>
  void Run(int64_t begin, int64_t end, const Body& body) {
    while (begin < end) {
      int64_t n = std::min(length_ - begin % length_, end - begin);
      if (splits_) n = std::min(n, run_ - begin % run_);
      Call(begin, n, body, std::make_index_sequence<sizeof...(In)>{});
      begin += n;
    }
  }

 private:
  template <typename Body, size_t... kIndex>
  void Call(int64_t begin, int64_t n, const Body& body, std::index_sequence<kIndex...>) {
    body(begin, n,
         std::get<kIndex>(blocks_).Load(space_, static_cast<int>(kIndex), std::get<kIndex>(in_),
                                        begin, n)...);
  }

  const Space& space_;
  const int64_t length_, run_;
  bool splits_ = false;  // blocks at the ends of runs, since an input is read in place
  std::tuple<const In*...> in_;
  std::tuple<BroadcastBlock<In>...> blocks_;
};

template <typename T, typename F, typename... In>
struct BroadcastValue {
  static constexpr int kArrays = sizeof...(In);
  F f;
  BroadcastSpace<kArrays> space;
  std::array<const void*, sizeof...(In)> in;  // a std::tuple is not trivially copyable

  MXTRAIN_HD ComputeOf<T> operator()(int64_t i) const {
    return Value(space.at(i), std::make_index_sequence<sizeof...(In)>{});
  }

 private:
  template <size_t... kIndex>
  MXTRAIN_HD ComputeOf<T> Value(const typename BroadcastSpace<kArrays>::Offsets& at,
                                std::index_sequence<kIndex...>) const {
    return f(static_cast<ComputeOf<In>>(static_cast<const In*>(in[kIndex])[at[kIndex]])...);
  }
};

// body(begin, n, element of `array` for these elements of the space) for all runs of [begin, end).
template <int kArrays, typename T, typename Body>
void ForRepeated(const BroadcastSpace<kArrays>& space, int which, const T* array, int64_t begin,
                 int64_t end, const Body& body) {
  const int64_t run = RunLength(space);
  while (begin < end) {
    const int64_t n = std::min(run - begin % run, end - begin);
    body(begin, n, array[space.at(begin)[static_cast<size_t>(which)]]);
    begin += n;
  }
}

template <bool kAdd, typename T, typename F, typename... In>
void MapBlock(int64_t n, T* y, const F& f, const In*... in) {
  if constexpr (std::is_same_v<T, float> || std::is_same_v<T, bfloat16>) {
    ElementLoopSimd<kAdd>(0, n, y, f, in...);
  } else {
    ElementLoop<kAdd>(0, n, y, f, in...);
  }
}

// Without gathering, where one of at most two inputs is repeated along runs and the other is not.
// Returns false elsewhere.
template <bool kAdd, typename T, typename F, typename A>
bool MapRuns(const BroadcastSpace<1>& space, int64_t begin, int64_t end, T* y, const F& f,
             const A* a) {
  if (!HasRuns(space, 0, 0)) return false;
  ForRepeated(space, 0, a, begin, end, [&](int64_t at, int64_t n, A element) {
    const auto value = [f, element = static_cast<ComputeOf<A>>(element)] { return f(element); };
    MapBlock<kAdd>(n, y + at, value);
  });
  return true;
}
template <bool kAdd, typename T, typename F, typename A, typename B>
bool MapRuns(const BroadcastSpace<2>& space, int64_t begin, int64_t end, T* y, const F& f,
             const A* a, const B* b) {
  if (space.Whole(0) && HasRuns(space, 1, 0)) {
    ForRepeated(space, 1, b, begin, end, [&](int64_t at, int64_t n, B element) {
      const auto value = [f, element = static_cast<ComputeOf<B>>(element)](ComputeOf<A> other) {
        return f(other, element);
      };
      MapBlock<kAdd>(n, y + at, value, a + at);
    });
    return true;
  }
  if (space.Whole(1) && HasRuns(space, 0, 0)) {
    ForRepeated(space, 0, a, begin, end, [&](int64_t at, int64_t n, A element) {
      const auto value = [f, element = static_cast<ComputeOf<A>>(element)](ComputeOf<B> other) {
        return f(element, other);
      };
      MapBlock<kAdd>(n, y + at, value, b + at);
    });
    return true;
  }
  return false;
}
template <bool kAdd, typename T, typename F, typename A, typename B, typename C>
bool MapRuns(const BroadcastSpace<3>&, int64_t, int64_t, T*, const F&, const A*, const B*,
             const C*) {
  return false;
}

}  // namespace detail

// `out` is plain and holds elements of T; `f` takes ComputeOf of each input's type and returns
// ComputeOf<T>. An input that is not repeated may also be the output.
template <typename T, typename F, typename... In>
void MapBroadcast(const OnCpu&, const TBlob& out, OpReqType req, const F& f,
                  const Broadcast<In>&... in) {
  constexpr int kArrays = sizeof...(In);
  const BroadcastSpace<kArrays> space(out.shape, {&in.shape...});
  bool whole = true;
  for (int a = 0; a < kArrays; ++a) whole = whole && space.Whole(a);
  if (whole) return detail::MapArrays(space.size(), out.dptr<T>(), req, f, in.data...);
  T* y = out.dptr<T>();
  SwitchReq(req, [&](auto accumulate) {
    ParallelFor(space.size(), kParallelGrain, [&](int64_t begin, int64_t end) {
      if (detail::MapRuns<accumulate()>(space, begin, end, y, f, in.data...)) return;
      const auto body = [&](int64_t at, int64_t n, const In*... block) {
        detail::MapBlock<accumulate()>(n, y + at, f, block...);
      };
      detail::BroadcastBlocks<In...>(space, in.data...).Run(begin, end, body);
    });
  });
}

// On other devices, element by element.
template <typename T, typename Device, typename F, typename... In>
void MapBroadcast(const Device& device, const TBlob& out, OpReqType req, const F& f,
                  const Broadcast<In>&... in) {
  constexpr int kArrays = sizeof...(In);
  MapOn<T>(device, out, req,
           detail::BroadcastValue<T, F, In...>{
               f, BroadcastSpace<kArrays>(out.shape, {&in.shape...}), {in.data...}});
}

}  // namespace mxtrain
