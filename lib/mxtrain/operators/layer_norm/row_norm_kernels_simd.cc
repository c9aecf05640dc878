// SPDX-License-Identifier: Apache-2.0
// row_norm_kernels.h, compiled once per instruction set; the best supported set is selected at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/layer_norm/row_norm_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/layer_norm/row_norm_kernels.h"
#include "mxtrain/operators/softmax/row_vectors.h"

#include "mxtrain/operators/layer_norm/row_moments_vectors.h"  // after row_vectors.h

HWY_BEFORE_NAMESPACE();
namespace mxtrain::layer_norm {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;
using namespace row_moments::HWY_NAMESPACE;

// Whole vectors of floats may be written around the caches.
template <bool kWhole, typename T>
HWY_INLINE void WriteOrStream(Vector value, T* to, int64_t count, [[maybe_unused]] bool stream) {
  if constexpr (kWhole && std::is_same_v<T, float>) {
    if (stream) return hn::Stream(value, Tag(), to);
  }
  Write<kWhole>(value, to, count);
}

template <RowNorm kNorm, typename T>
void ForwardOf(const ForwardRows<T>& rows, int64_t begin, int64_t end) {
  constexpr bool kCentred = IsCentred(kNorm);
  const int64_t n = rows.length;
  for (int64_t row = begin; row < end; ++row) {
    const T* x = rows.x + row * n;
    const auto [mean, deviation] = MomentsOf<kCentred>(x, n, rows.eps);
    const auto moments = RowMoments<float>::Of(mean, deviation);
    if (rows.saved) rows.saved[row] = moments;
    if (rows.mean) rows.mean[row] = static_cast<float>(mean);
    if (rows.deviation) rows.deviation[row] = static_cast<float>(deviation);
    if (!rows.y) continue;
    T* y = rows.y + row * n;
    [[maybe_unused]] const Vector middle = Of(moments.center), shift = Of(moments.shift);
    const Vector inverse = Of(moments.inverse);
    ForVectors(0, n, [&](auto whole, int64_t k, int64_t count) {
      Vector value = Read<whole()>(x + k, count);
      if constexpr (kCentred) {
        value = hn::MulAdd(hn::Sub(value, middle), inverse, shift);
      } else {
        value = hn::Mul(value, inverse);
      }
      if constexpr (HasBeta(kNorm)) {
        value = hn::MulAdd(value, Read<whole()>(rows.gamma + k, count),
                           Read<whole()>(rows.beta + k, count));
      } else if constexpr (HasGamma(kNorm)) {
        value = hn::Mul(value, Read<whole()>(rows.gamma + k, count));
      }
      WriteOrStream<whole()>(value, y + k, count, rows.stream);
    });
  }
  if (rows.stream) hwy::FlushStream();
}

// Some rows of a backward pass, from `first` on.
template <RowNorm kNorm, int kRows, typename T>
struct RowGroup {
  static constexpr bool kCentred = IsCentred(kNorm);
  const BackwardRows<T>& rows;
  const T *head[kRows], *value[kRows];
  RowMoments<float> moments[kRows];
  float mean[kRows] = {}, along[kRows] = {};  // averages of g, and of g n

  RowGroup(const BackwardRows<T>& given, int64_t first) : rows(given) {
    for (int r = 0; r < kRows; ++r) {
      head[r] = rows.head + (first + r) * rows.length;
      value[r] = rows.value + (first + r) * rows.length;
      moments[r] = rows.moments[first + r];
    }
  }

  // n of row r; with `whole` false, of the first `count` elements.
  template <bool kWhole>
  HWY_INLINE Vector Normal(int r, int64_t k, int64_t count) const {
    const Vector v = Read<kWhole>(value[r] + k, count);
    if constexpr (ReadsOutput(kNorm)) return v;
    const Vector inverse = Of(moments[r].inverse);
    if constexpr (!kCentred) return hn::Mul(v, inverse);
    const Vector normal =
        hn::MulAdd(hn::Sub(v, Of(moments[r].center)), inverse, Of(moments[r].shift));
    return kWhole ? normal : KeepFirst(normal, count);  // infinity times 0 would be NaN
  }

  HWY_INLINE void Average() {
    double sums[kRows] = {}, products[kRows] = {};
    for (int64_t begin = 0; begin < rows.length; begin += kBlock) {
      Vector sum[kRows], product[kRows];
      for (int r = 0; r < kRows; ++r) sum[r] = product[r] = hn::Zero(Tag());
      ForVectors(begin, std::min(rows.length, begin + kBlock),
                 [&](auto whole, int64_t k, int64_t count) {
                   [[maybe_unused]] Vector gamma;
                   if constexpr (HasGamma(kNorm)) gamma = Read<whole()>(rows.gamma + k, count);
                   for (int r = 0; r < kRows; ++r) {
                     Vector g = Read<whole()>(head[r] + k, count);
                     if constexpr (HasGamma(kNorm)) g = hn::Mul(g, gamma);
                     if constexpr (kCentred) sum[r] = hn::Add(sum[r], g);
                     product[r] = hn::MulAdd(g, Normal<whole()>(r, k, count), product[r]);
                   }
                 });
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kCentred) sums[r] += static_cast<double>(Total(sum[r]));
        products[r] += static_cast<double>(Total(product[r]));
      }
    }
    const double length = static_cast<double>(rows.length);
    for (int r = 0; r < kRows; ++r) {
      mean[r] = static_cast<float>(sums[r] / length);
      along[r] = static_cast<float>(products[r] / length);
    }
  }

  // The gradient of the data, and the addition to the sums for gamma and beta.
  HWY_INLINE void Differentiate(int64_t first, float* all_sums) const {
    T* dx[kRows] = {};
    for (int r = 0; r < kRows && rows.dx; ++r) dx[r] = rows.dx + (first + r) * rows.length;
    float *products = all_sums, *sums = all_sums ? all_sums + rows.length : nullptr;
    ForVectors(0, rows.length, [&](auto whole, int64_t k, int64_t count) {
      [[maybe_unused]] Vector gamma;
      if constexpr (HasGamma(kNorm)) gamma = Read<whole()>(rows.gamma + k, count);
      [[maybe_unused]] Vector product = hn::Zero(Tag()), sum = product;
      for (int r = 0; r < kRows; ++r) {
        const Vector g = Read<whole()>(head[r] + k, count), normal = Normal<whole()>(r, k, count);
        if constexpr (HasGamma(kNorm)) {
          product = hn::MulAdd(g, normal, product);
          sum = hn::Add(sum, g);
        }
        if (!rows.dx) continue;
        Vector slope = g;
        if constexpr (HasGamma(kNorm)) slope = hn::Mul(slope, gamma);
        if constexpr (kCentred) slope = hn::Sub(slope, Of(mean[r]));
        Vector result = hn::Mul(hn::NegMulAdd(normal, Of(along[r]), slope), Of(moments[r].inverse));
        if (rows.add) result = hn::Add(result, Read<whole()>(dx[r] + k, count));
        WriteOrStream<whole()>(result, dx[r] + k, count, rows.stream);
      }
      if constexpr (HasGamma(kNorm)) {
        if (!products) return;
        Write<whole()>(hn::Add(product, Read<whole()>(products + k, count)), products + k, count);
        Write<whole()>(hn::Add(sum, Read<whole()>(sums + k, count)), sums + k, count);
      }
    });
  }
};

template <RowNorm kNorm, int kRows, typename T>
HWY_INLINE void BackwardGroup(const BackwardRows<T>& rows, int64_t first, float* sums) {
  RowGroup<kNorm, kRows, T> group(rows, first);
  if (rows.dx) group.Average();
  group.Differentiate(first, sums);
}

template <RowNorm kNorm, typename T>
void BackwardOf(const BackwardRows<T>& rows, int64_t begin, int64_t end, float* sums) {
  if (sums) std::fill_n(sums, 2 * rows.length, 0.0f);
  int64_t row = begin;
  if (rows.length <= kMostTogether) {
    for (; row + kRowsTogether <= end; row += kRowsTogether)
      BackwardGroup<kNorm, kRowsTogether>(rows, row, sums);
  }
  for (; row < end; ++row) BackwardGroup<kNorm, 1>(rows, row, sums);
  if (rows.stream) hwy::FlushStream();
}

// Choices outside the loops.
template <typename T>
void Forward(RowNorm norm, const ForwardRows<T>& rows, int64_t begin, int64_t end) {
  switch (norm) {
    case RowNorm::kLayer:
      return ForwardOf<RowNorm::kLayer>(rows, begin, end);
    case RowNorm::kRootMeanSquare:
      return ForwardOf<RowNorm::kRootMeanSquare>(rows, begin, end);
    case RowNorm::kPlain:
      return ForwardOf<RowNorm::kPlain>(rows, begin, end);
  }
}
template <typename T>
void Backward(RowNorm norm, const BackwardRows<T>& rows, int64_t begin, int64_t end, float* sums) {
  switch (norm) {
    case RowNorm::kLayer:
      return BackwardOf<RowNorm::kLayer>(rows, begin, end, sums);
    case RowNorm::kRootMeanSquare:
      return BackwardOf<RowNorm::kRootMeanSquare>(rows, begin, end, sums);
    case RowNorm::kPlain:
      return BackwardOf<RowNorm::kPlain>(rows, begin, end, sums);
  }
}

// A table of one type's kernels: run-time selection needs names without angle brackets.
template <typename T>
constexpr Kernels<T> kKernels = {Forward<T>, Backward<T>};
const Kernels<float>& KernelsOfFloat() {
  return kKernels<float>;
}
const Kernels<bfloat16>& KernelsOfBfloat16() {
  return kKernels<bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::layer_norm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::layer_norm {
HWY_EXPORT(KernelsOfFloat);
HWY_EXPORT(KernelsOfBfloat16);

template <>
const Kernels<float>& KernelsOf() {
  return HWY_DYNAMIC_DISPATCH(KernelsOfFloat)();
}
template <>
const Kernels<bfloat16>& KernelsOf() {
  return HWY_DYNAMIC_DISPATCH(KernelsOfBfloat16)();
}

}  // namespace mxtrain::layer_norm

#endif  // HWY_ONCE
