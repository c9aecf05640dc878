// SPDX-License-Identifier: Apache-2.0
// Vectors of floats for loops over rows of float, bfloat16 or float16. Included by a *_simd.cc file
// after Highway, once per instruction set: hence without #pragma once.
HWY_BEFORE_NAMESPACE();
namespace mxtrain::row_vectors {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using Tag = hn::CappedTag<float, 16>;
using Vector = hn::Vec<Tag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(Tag()));

HWY_INLINE Vector Of(float value) {
  return hn::Set(Tag(), value);
}

HWY_INLINE Vector Load(const float* from) {
  return hn::LoadU(Tag(), from);
}
HWY_INLINE Vector Load(const bfloat16* from) {
  constexpr hn::RebindToUnsigned<Tag> wide;
  constexpr hn::Rebind<uint16_t, Tag> narrow;
  return hn::BitCast(Tag(), hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, &from->bits))));
}

HWY_INLINE void Store(Vector value, float* to) {
  hn::StoreU(value, Tag(), to);
}
// Rounded to nearest, as by bfloat16(float).
HWY_INLINE void Store(Vector value, bfloat16* to) {
  constexpr hn::RebindToUnsigned<Tag> wide;
  const auto bits = hn::BitCast(wide, value);
  const auto high = hn::ShiftRight<16>(bits), even = hn::And(high, hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(even, hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(high, hn::Set(wide, 0x40));
  const auto result = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(value)), quiet, rounded);
  hn::StoreU(
      hn::DemoteTo(hn::Rebind<uint16_t, Tag>(), hn::BitCast(hn::RebindToSigned<Tag>(), result)),
      hn::Rebind<uint16_t, Tag>(), &to->bits);
}

// The sets that convert binary16 by an instruction; Highway's replacement for it in other sets does
// not round to nearest, so they convert element by element.
constexpr bool kConvertsHalf = HWY_TARGET <= HWY_AVX2;

template <bool kByInstruction = kConvertsHalf>
HWY_INLINE Vector Load(const float16* from) {
  if constexpr (kByInstruction) {
    constexpr hn::Rebind<hwy::float16_t, Tag> half;
    return hn::PromoteTo(Tag(),
                         hn::BitCast(half, hn::LoadU(hn::Rebind<uint16_t, Tag>(), &from->bits)));
  } else {
    alignas(64) float wide[kLanes];
    for (int64_t k = 0; k < kLanes; ++k) wide[k] = static_cast<float>(from[k]);
    return Load(wide);
  }
}
template <bool kByInstruction = kConvertsHalf>
HWY_INLINE void Store(Vector value, float16* to) {
  if constexpr (kByInstruction) {
    constexpr hn::Rebind<hwy::float16_t, Tag> half;
    constexpr hn::Rebind<uint16_t, Tag> bits;
    hn::StoreU(hn::BitCast(bits, hn::DemoteTo(half, value)), bits, &to->bits);
  } else {
    alignas(64) float wide[kLanes];
    Store(value, wide);
    for (int64_t k = 0; k < kLanes; ++k) to[k] = static_cast<float16>(wide[k]);
  }
}

// The first `count` elements, zeros after them; count < kLanes.
template <typename T>
HWY_INLINE Vector LoadPart(const T* from, int64_t count) {
  alignas(64) T whole[kLanes] = {};
  std::copy_n(from, count, whole);
  return Load(whole);
}
template <typename T>
HWY_INLINE void StorePart(Vector value, T* to, int64_t count) {
  alignas(64) T whole[kLanes];
  Store(value, whole);
  std::copy_n(whole, count, to);
}
// The lanes before `count`; zeros after them.
HWY_INLINE Vector KeepFirst(Vector value, int64_t count) {
  return hn::IfThenElseZero(hn::FirstN(Tag(), static_cast<size_t>(count)), value);
}

template <bool kWhole, typename T>
HWY_INLINE Vector Read(const T* from, int64_t count) {
  if constexpr (kWhole) {
    return Load(from);
  } else {
    return LoadPart(from, count);
  }
}
template <bool kWhole, typename T>
HWY_INLINE void Write(Vector value, T* to, int64_t count) {
  if constexpr (kWhole) {
    Store(value, to);
  } else {
    StorePart(value, to, count);
  }
}

// f(whole, k, count) for the vectors of [begin, end) that start at k: whole ones (std::true_type),
// then a part of `count` elements if that is left.
template <typename F>
HWY_INLINE void ForVectors(int64_t begin, int64_t end, F f) {
  int64_t k = begin;
  for (; k + kLanes <= end; k += kLanes) f(std::true_type(), k, kLanes);
  if (k < end) f(std::false_type(), k, end - k);
}

// The sum of the lanes.
HWY_INLINE float Total(Vector value) {
  return hn::GetLane(hn::SumOfLanes(Tag(), value));
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::row_vectors
HWY_AFTER_NAMESPACE();
