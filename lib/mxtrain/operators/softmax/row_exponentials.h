// SPDX-License-Identifier: Apache-2.0
// The exponential function of softmaxes, by vectors. Included by a *_simd.cc file after
// row_vectors.h, once per instruction set: hence without #pragma once.
HWY_BEFORE_NAMESPACE();
namespace mxtrain::row_exponentials {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;

// e^x for x <= 0; zero where that is below the least normal number; NaN stays NaN. As
// vector_math::Exp with fewer steps: e^r on |r| <= log(2) / 2 is 1 + r + r^2 P(r), P minimax, and
// 2^n is one normal number. Error at most 1 unit in the last place.
HWY_INLINE Vector ExpOfNegative(Vector x) {
  const hn::RebindToUnsigned<Tag> bits;
  // 1.5 * 2^23 + 127: adding it rounds to an integer and leaves the exponent of 2^n in the low
  // bits.
  const Vector rounder = Of(12583039.0f);
  const Vector shifted = hn::MulAdd(x, Of(1.44269504f), rounder), n = hn::Sub(shifted, rounder);
  const Vector r = hn::NegMulAdd(n, Of(-2.12194440e-4f), hn::NegMulAdd(n, Of(0.693359375f), x));
  Vector sum = hn::MulAdd(Of(1.38145985e-3f), r, Of(8.36871688e-3f));
  sum = hn::MulAdd(sum, r, Of(4.16683880e-2f));
  sum = hn::MulAdd(sum, r, Of(1.66665206e-1f));
  sum = hn::MulAdd(sum, r, Of(4.99999934e-1f));
  sum = hn::Add(hn::MulAdd(sum, hn::Mul(r, r), r), Of(1.0f));
  const Vector power = hn::BitCast(Tag(), hn::ShiftLeft<23>(hn::BitCast(bits, shifted)));
  return hn::IfThenZeroElse(hn::Lt(x, Of(-87.33654f)), hn::Mul(sum, power));
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::row_exponentials
HWY_AFTER_NAMESPACE();
