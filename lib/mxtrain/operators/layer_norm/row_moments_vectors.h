// SPDX-License-Identifier: Apache-2.0
// Mean and standard deviation of a contiguous row, by vectors. Included by a *_simd*.cc file after
// row_vectors.h, once per instruction set: hence without #pragma once.
//
// The mean is a float sum and need not be exact: the second pass sums the distances from it in
// floats, the sums of kBlock elements in double, and corrects mean and variance by their average
// (Chan, Golub, LeVeque 1983, "corrected two-pass algorithm").
HWY_BEFORE_NAMESPACE();
namespace mxtrain::row_moments {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;
using layer_norm::kBlock;

template <typename T>
HWY_INLINE float SumOf(const T* x, int64_t n) {
  Vector a = hn::Zero(Tag()), b = a, c = a, d = a;
  int64_t k = 0;
  for (; k + 4 * kLanes <= n; k += 4 * kLanes) {
    a = hn::Add(a, Load(x + k));
    b = hn::Add(b, Load(x + k + kLanes));
    c = hn::Add(c, Load(x + k + 2 * kLanes));
    d = hn::Add(d, Load(x + k + 3 * kLanes));
  }
  ForVectors(k, n, [&](auto whole, int64_t at, int64_t count) {
    a = hn::Add(a, Read<whole()>(x + at, count));
  });
  return Total(hn::Add(hn::Add(a, b), hn::Add(c, d)));
}

// Sums of the distances from `center`, and of their squares.
struct Distances {
  double sum = 0, squares = 0;
};
template <bool kCentred, typename T>
HWY_INLINE Distances DistancesOf(const T* x, int64_t n, float center) {
  [[maybe_unused]] const Vector middle = Of(center);
  Distances result;
  for (int64_t begin = 0; begin < n; begin += kBlock) {
    const int64_t end = std::min(n, begin + kBlock);
    Vector sum = hn::Zero(Tag()), other_sum = sum, squares = sum, other = sum;
    int64_t k = begin;
    for (; k + 2 * kLanes <= end; k += 2 * kLanes) {
      Vector p = Load(x + k), q = Load(x + k + kLanes);
      if constexpr (kCentred) {
        p = hn::Sub(p, middle);
        q = hn::Sub(q, middle);
        sum = hn::Add(sum, p);
        other_sum = hn::Add(other_sum, q);
      }
      squares = hn::MulAdd(p, p, squares);
      other = hn::MulAdd(q, q, other);
    }
    ForVectors(k, end, [&](auto whole, int64_t at, int64_t count) {
      Vector p = Read<whole()>(x + at, count);
      if constexpr (kCentred) {
        p = hn::Sub(p, middle);
        if constexpr (!whole()) p = KeepFirst(p, count);
        sum = hn::Add(sum, p);
      }
      squares = hn::MulAdd(p, p, squares);
    });
    result.squares += static_cast<double>(Total(hn::Add(squares, other)));
    if constexpr (kCentred) result.sum += static_cast<double>(Total(hn::Add(sum, other_sum)));
  }
  return result;
}

struct Moments {
  double mean = 0, deviation = 0;  // sqrt(variance + eps)
};

// For rows whose sums or squares do not fit into float.
template <bool kCentred, typename T>
Moments WideMomentsOf(const T* x, int64_t n, double eps) {
  const double length = static_cast<double>(n);
  double sum = 0, squares = 0;
  for (int64_t k = 0; kCentred && k < n; ++k) sum += static_cast<double>(static_cast<float>(x[k]));
  const double mean = sum / length;
  for (int64_t k = 0; k < n; ++k) {
    const double distance = static_cast<double>(static_cast<float>(x[k])) - mean;
    squares += distance * distance;
  }
  return {mean, std::sqrt(squares / length + eps)};
}

// The mean is 0 unless kCentred.
template <bool kCentred, typename T>
HWY_INLINE Moments MomentsOf(const T* x, int64_t n, double eps) {
  constexpr double kLeast = 1e-30;  // squares below it may have become 0
  const double length = static_cast<double>(n);
  const float center = kCentred ? SumOf(x, n) / static_cast<float>(n) : 0.0f;
  const Distances distances = DistancesOf<kCentred>(x, n, center);
  const double away = distances.sum / length,
               spread = std::max(distances.squares / length - away * away, 0.0) + eps;
  if (!(spread > kLeast && spread < HUGE_VAL)) return WideMomentsOf<kCentred>(x, n, eps);
  return {static_cast<double>(center) + away, std::sqrt(spread)};
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::row_moments
HWY_AFTER_NAMESPACE();
