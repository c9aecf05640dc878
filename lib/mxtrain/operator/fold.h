// SPDX-License-Identifier: Apache-2.0
#pragma once
// Folds: what a reduction (reduction.h) does with its elements, and the vectorized loops of the
// CPU.
//
// A fold F is a struct of static functions: kStart, Step(folded, x), Join(folded, folded), both
// MXTRAIN_HD and in double. kStart is neutral for Join. A fold whose result is one of its elements
// may set `static constexpr bool kSelects = true`; its functions are then templates, and the CPU
// runs them in the type in which elements are computed.
#include <algorithm>

#include "mxtrain/operator/elementwise.h"

namespace mxtrain {

struct SameValue {
  template <typename C>
  MXTRAIN_HD C operator()(C x) const {
    return x;
  }
};

namespace detail {

inline constexpr int64_t kFoldLanes = 64;  // accumulators that keep the processor busy

// The type of accumulators.
template <typename F, typename Value>
struct AccumulatorOfFold {
  using Type = double;
};
template <typename F, typename Value>
requires(F::kSelects) struct AccumulatorOfFold<F, Value> {
  using Type = Value;
};

// Hints that elements [x, x + n) are about to be read. They may be outside the array.
template <typename T>
[[gnu::always_inline]] inline void Prefetch(const T* x, int64_t n) {
  constexpr auto kLine = static_cast<int64_t>(64 / sizeof(T));
  for (int64_t k = 0; k < n; k += kLine) __builtin_prefetch(x + k);
}
inline constexpr int64_t kPrefetchAhead = 1024;  // elements

// folded[j] is folded with f(in[r * stride + j]...) for r = 0, 1, ..., rows - 1 in this order, for
// every j < columns.
template <typename F, typename A, typename Map, typename... In>
MXTRAIN_SIMD void FoldInto(A* folded, int64_t columns, int64_t rows, int64_t stride, Map f,
                           const In*... in) {
  const auto term = [&](int64_t at) __attribute__((always_inline)) {
    return static_cast<A>(f(static_cast<ComputeOf<In>>(in[at])...));
  };
  constexpr int64_t kTogether = 4;  // rows, so that `folded` is loaded and stored less often
  int64_t at = 0;
  for (; rows >= kTogether; rows -= kTogether, at += kTogether * stride) {
    if (stride == columns) (Prefetch(in + at + kPrefetchAhead, kTogether * stride), ...);
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) {
      const A two = F::Step(F::Step(folded[j], term(at + j)), term(at + stride + j));
      folded[j] = F::Step(F::Step(two, term(at + 2 * stride + j)), term(at + 3 * stride + j));
    }
  }
  for (; rows > 0; --rows, at += stride) {
#pragma GCC ivdep
    for (int64_t j = 0; j < columns; ++j) folded[j] = F::Step(folded[j], term(at + j));
  }
}

// folded[j] is joined with folded[j + n], folded[j + 2 n], ..., of `count` such.
template <typename F, typename A>
MXTRAIN_SIMD void JoinAdjacent(A* folded, int64_t n, int64_t count) {
  if (n == 1 && count == kFoldLanes) {  // lengths known to the compiler
    static_assert(kFoldLanes == 64);
    for (int64_t j = 0; j < 32; ++j) folded[j] = F::Join(folded[j], folded[32 + j]);
    for (int64_t j = 0; j < 16; ++j) folded[j] = F::Join(folded[j], folded[16 + j]);
    for (int64_t j = 0; j < 8; ++j) folded[j] = F::Join(folded[j], folded[8 + j]);
    count = 8;
  }
  while (count > 1) {
    const int64_t left = (count + 1) / 2, joined = (count - left) * n;
    const A* other = folded + left * n;
#pragma GCC ivdep
    for (int64_t j = 0; j < joined; ++j) folded[j] = F::Join(folded[j], other[j]);
    count = left;
  }
}
// folded[i] = the fold of x[i * group], ..., x[i * group + group - 1]. x may be `folded`.
template <typename F, typename A, typename In>
MXTRAIN_SIMD void FoldGroups(const In* x, int64_t n, int64_t group, A* folded) {
  constexpr int64_t kLanes = 8;
  const auto term = [&](int64_t at) { return static_cast<A>(static_cast<ComputeOf<In>>(x[at])); };
  for (int64_t i = 0; i < n; ++i, x += group) {
    A value = static_cast<A>(F::kStart);
    int64_t k = 0;
    if (group >= 2 * kLanes) {
      A lanes[kLanes];
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] = value;
      for (; k + kLanes <= group; k += kLanes) {
        for (int64_t j = 0; j < kLanes; ++j) lanes[j] = F::Step(lanes[j], term(k + j));
      }
      for (int64_t j = 0; j < 4; ++j) lanes[j] = F::Join(lanes[j], lanes[4 + j]);
      value = F::Join(F::Join(lanes[0], lanes[1]), F::Join(lanes[2], lanes[3]));
    }
    for (; k < group; ++k) value = F::Step(value, term(k));
    folded[i] = value;
  }
}
// The fold of folds.
template <typename F>
struct JoinFold : F {
  template <typename A>
  MXTRAIN_HD static A Step(A a, A b) {
    return F::Join(a, b);
  }
};

}  // namespace detail

// The fold of x[0], ..., x[n - 1] by the calling CPU thread.
template <typename F, typename T>
double FoldRow(const T* x, int64_t n) {
  using A = typename detail::AccumulatorOfFold<F, ComputeOf<T>>::Type;
  constexpr int64_t kLanes = detail::kFoldLanes;
  alignas(64) A folded[kLanes];
  std::fill_n(folded, kLanes, static_cast<A>(F::kStart));
  const int64_t rest = n % kLanes;
  detail::FoldInto<F>(folded, kLanes, n / kLanes, kLanes, SameValue{}, x);
  detail::FoldInto<F>(folded, rest, 1, 0, SameValue{}, x + (n - rest));
  detail::JoinAdjacent<F>(folded, 1, kLanes);
  return static_cast<double>(folded[0]);
}

}  // namespace mxtrain
