// SPDX-License-Identifier: Apache-2.0
// attention_kernels.h, compiled once per instruction set; the best supported set is selected at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE \
  "mxtrain/operators/scaled_dot_product_attention/attention_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/highway.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/scaled_dot_product_attention/attention_kernels.h"
#include "mxtrain/operators/softmax/row_vectors.h"

#include "mxtrain/operators/softmax/row_exponentials.h"  // after row_vectors.h

HWY_BEFORE_NAMESPACE();
namespace mxtrain::attention {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;
using namespace row_exponentials::HWY_NAMESPACE;

// Rows of a tile: with two vectors each as many accumulators as the registers hold.
constexpr int kTileRows = kLanes >= 16 ? 8 : 6;

// kRows rows and kVectors vectors of columns, from `row` and `column` on.
template <int kRows, int kVectors>
HWY_INLINE void MultiplyTile(const BlockProduct& p, int64_t row, int64_t column) {
  Vector sum[kRows][kVectors];
  float* c = p.c + row * p.c_row + column;
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v)
      sum[r][v] = p.add ? Load(c + r * p.c_row + v * kLanes) : hn::Zero(Tag());
  }
  const float *a = p.a + row * p.a_row, *b = p.b + column;
  for (int64_t k = 0; k < p.inner; ++k, a += p.a_column, b += p.b_row) {
    Vector right[kVectors];
    for (int v = 0; v < kVectors; ++v) right[v] = Load(b + v * kLanes);
    for (int r = 0; r < kRows; ++r) {
      const Vector left = Of(a[r * p.a_row]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] = hn::MulAdd(left, right[v], sum[r][v]);
    }
  }
  for (int r = 0; r < kRows; ++r) {
    for (int v = 0; v < kVectors; ++v) Store(sum[r][v], c + r * p.c_row + v * kLanes);
  }
}

template <int kVectors>
HWY_INLINE void MultiplyColumns(const BlockProduct& p, int64_t column) {
  int64_t row = 0;
  for (; row + kTileRows <= p.rows; row += kTileRows)
    MultiplyTile<kTileRows, kVectors>(p, row, column);
  for (; row + 4 <= p.rows; row += 4) MultiplyTile<4, kVectors>(p, row, column);
  for (; row + 2 <= p.rows; row += 2) MultiplyTile<2, kVectors>(p, row, column);
  if (row < p.rows) MultiplyTile<1, kVectors>(p, row, column);
}

void Multiply(const BlockProduct& p) {
  int64_t column = 0;
  for (; column + 2 * kLanes <= p.columns; column += 2 * kLanes) MultiplyColumns<2>(p, column);
  for (; column < p.columns; column += kLanes) MultiplyColumns<1>(p, column);
}

// f(k, present) for the vectors of a padded row of n elements, and the mask of those that count.
template <typename F>
HWY_INLINE void ForPadded(int64_t n, F f) {
  for (int64_t k = 0; k < n; k += kLanes) {
    const int64_t count = std::min(kLanes, n - k);
    f(k, hn::FirstN(Tag(), static_cast<size_t>(count)));
  }
}

constexpr float kNever = -std::numeric_limits<float>::infinity();

// -infinity where the mask is, even if the score is NaN or infinite.
HWY_INLINE Vector Masked(Vector score, Vector mask) {
  return hn::IfThenElse(hn::Eq(mask, Of(kNever)), mask, hn::Add(score, mask));
}

void Soften(const ScoreBlock& block, float* scores, float* largest, float* sum, float* rescale) {
  for (int64_t q = 0; q < block.queries; ++q) {
    float* row = scores + q * block.row;
    const float* mask = block.mask ? block.mask + q * block.row : nullptr;
    const float* factors = block.factors ? block.factors + q * block.row : nullptr;
    Vector high = Of(kNever);
    ForPadded(block.keys, [&](int64_t k, auto present) {
      Vector score = Load(row + k);
      if (mask) {
        score = Masked(score, Load(mask + k));
        Store(score, row + k);
      }
      high = hn::Max(high, hn::IfThenElse(present, score, Of(kNever)));
    });
    const float before = largest[q],
                now = std::max(before, hn::GetLane(hn::MaxOfLanes(Tag(), high)));
    // Without any key so far all exponentials are 0, whatever is subtracted.
    const Vector shift = Of(now == kNever ? 0.0f : now);
    Vector total = hn::Zero(Tag());
    ForPadded(block.keys, [&](int64_t k, auto present) {
      Vector p = hn::IfThenElseZero(present, ExpOfNegative(hn::Sub(Load(row + k), shift)));
      total = hn::Add(total, p);
      if (factors) p = hn::Mul(p, hn::IfThenElseZero(present, Load(factors + k)));
      Store(p, row + k);
    });
    const float factor = before == kNever ? 0.0f : std::exp(before - now);
    largest[q] = now;
    sum[q] = sum[q] * factor + Total(total);
    rescale[q] = factor;
  }
}

void Differentiate(const ScoreBlock& block, const float* largest, const float* inverse_sum,
                   const float* mean, float* scores, float* slopes) {
  for (int64_t q = 0; q < block.queries; ++q) {
    float *row = scores + q * block.row, *slope = slopes + q * block.row;
    const float* mask = block.mask ? block.mask + q * block.row : nullptr;
    const float* factors = block.factors ? block.factors + q * block.row : nullptr;
    const Vector shift = Of(largest[q]), part = Of(inverse_sum[q]), average = Of(mean[q]);
    ForPadded(block.keys, [&](int64_t k, auto present) {
      Vector score = Load(row + k), head = Load(slope + k);
      if (mask) score = Masked(score, Load(mask + k));
      const Vector power = ExpOfNegative(hn::Sub(score, shift)),
                   p = hn::IfThenElseZero(present, hn::Mul(power, part));
      Vector kept = p;
      if (factors) {
        const Vector factor = hn::IfThenElseZero(present, Load(factors + k));
        kept = hn::Mul(p, factor);
        head = hn::Mul(head, factor);
      }
      Store(kept, row + k);
      Store(hn::IfThenElseZero(present, hn::Mul(p, hn::Sub(head, average))), slope + k);
    });
  }
}

constexpr Kernels kKernels = {Multiply, Soften, Differentiate};
const Kernels& KernelsHere() {
  return kKernels;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::attention
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::attention {
HWY_EXPORT(KernelsHere);

const Kernels& BlockKernels() {
  return HWY_DYNAMIC_DISPATCH(KernelsHere)();
}

}  // namespace mxtrain::attention

#endif  // HWY_ONCE
