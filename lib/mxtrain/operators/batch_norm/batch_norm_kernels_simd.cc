// SPDX-License-Identifier: Apache-2.0
// batch_norm_kernels.h, compiled once per instruction set; the best supported set is selected at
// run time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/batch_norm/batch_norm_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/cache_control.h>
#include <hwy/highway.h>

#include <cstring>
#include <type_traits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/batch_norm/batch_norm_kernels.h"

HWY_BEFORE_NAMESPACE();
namespace mxtrain::batch_norm {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

template <int kWidth>
using Tag = hn::CappedTag<float, kWidth>;
template <int kWidth>
constexpr int kLanes = static_cast<int>(hn::MaxLanes(Tag<kWidth>()));

// Loads and stores of vectors. Narrow values are rounded to nearest, as by bfloat16(float).
template <int kWidth>
HWY_INLINE auto LoadVector(const float* from) {
  return hn::LoadU(Tag<kWidth>(), from);
}
template <int kWidth>
HWY_INLINE auto LoadVector(const bfloat16* from) {
  constexpr hn::RebindToUnsigned<Tag<kWidth>> wide;
  constexpr hn::Rebind<uint16_t, Tag<kWidth>> narrow;
  return hn::BitCast(Tag<kWidth>(),
                     hn::ShiftLeft<16>(hn::PromoteTo(wide, hn::LoadU(narrow, &from->bits))));
}
template <int kWidth>
HWY_INLINE auto Narrowed(hn::Vec<Tag<kWidth>> value) {
  constexpr hn::RebindToUnsigned<Tag<kWidth>> wide;
  const auto bits = hn::BitCast(wide, value);
  const auto high = hn::ShiftRight<16>(bits), even = hn::And(high, hn::Set(wide, 1));
  const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(even, hn::Set(wide, 0x7fff))));
  const auto quiet = hn::Or(high, hn::Set(wide, 0x40));
  const auto result = hn::IfThenElse(hn::RebindMask(wide, hn::IsNaN(value)), quiet, rounded);
  return hn::DemoteTo(hn::Rebind<uint16_t, Tag<kWidth>>(),
                      hn::BitCast(hn::RebindToSigned<Tag<kWidth>>(), result));
}
template <int kWidth>
HWY_INLINE void StoreVector(hn::Vec<Tag<kWidth>> value, float* to) {
  hn::StoreU(value, Tag<kWidth>(), to);
}
template <int kWidth>
HWY_INLINE void StoreVector(hn::Vec<Tag<kWidth>> value, bfloat16* to) {
  hn::StoreU(Narrowed<kWidth>(value), hn::Rebind<uint16_t, Tag<kWidth>>(), &to->bits);
}
template <int kWidth>
HWY_INLINE void StreamVector(hn::Vec<Tag<kWidth>> value, float* to) {
  hn::Stream(value, Tag<kWidth>(), to);
}
template <int kWidth>
HWY_INLINE void StreamVector(hn::Vec<Tag<kWidth>> value, bfloat16* to) {
  if constexpr (kLanes<kWidth> >= 8) {  // streaming stores need at least 16 bytes
    hn::Stream(Narrowed<kWidth>(value), hn::Rebind<uint16_t, Tag<kWidth>>(), &to->bits);
  } else {
    StoreVector<kWidth>(value, to);
  }
}

// A cell in registers.
template <int kWidth>
struct Cell {
  static constexpr int kVectors = kWidth / kLanes<kWidth>;
  hn::Vec<Tag<kWidth>> v[kVectors];

  static Cell Of(float value) {
    Cell c;
    for (auto& v : c.v) v = hn::Set(Tag<kWidth>(), value);
    return c;
  }
  template <typename T>
  static Cell Load(const T* from) {
    Cell c;
    for (int i = 0; i < kVectors; ++i) c.v[i] = LoadVector<kWidth>(from + i * kLanes<kWidth>);
    return c;
  }
  template <typename T>
  void Store(T* to) const {
    for (int i = 0; i < kVectors; ++i) StoreVector<kWidth>(v[i], to + i * kLanes<kWidth>);
  }
  template <typename T>
  void Stream(T* to) const {
    for (int i = 0; i < kVectors; ++i) StreamVector<kWidth>(v[i], to + i * kLanes<kWidth>);
  }
  // The first `count` elements, zeros after them.
  template <typename T>
  static Cell LoadPart(const T* from, int count) {
    alignas(64) T whole[kWidth] = {};
    std::copy_n(from, count, whole);
    return Load(whole);
  }
  template <typename T>
  void StorePart(T* to, int count) const {
    alignas(64) T whole[kWidth];
    Store(whole);
    std::copy_n(whole, count, to);
  }
  float Total() const {
    auto sum = v[0];
    for (int i = 1; i < kVectors; ++i) sum = hn::Add(sum, v[i]);
    return hn::GetLane(hn::SumOfLanes(Tag<kWidth>(), sum));
  }
};

// f applied to the vectors of cells, one by one.
template <int kWidth, typename F, typename... Cells>
HWY_INLINE Cell<kWidth> Each(F f, const Cell<kWidth>& first, const Cells&... more) {
  Cell<kWidth> result;
  for (int i = 0; i < Cell<kWidth>::kVectors; ++i) result.v[i] = f(first.v[i], more.v[i]...);
  return result;
}
template <int kWidth>
HWY_INLINE Cell<kWidth> operator+(const Cell<kWidth>& a, const Cell<kWidth>& b) {
  return Each([](auto x, auto y) { return hn::Add(x, y); }, a, b);
}
template <int kWidth>
HWY_INLINE Cell<kWidth> operator-(const Cell<kWidth>& a, const Cell<kWidth>& b) {
  return Each([](auto x, auto y) { return hn::Sub(x, y); }, a, b);
}
template <int kWidth>
HWY_INLINE Cell<kWidth> operator*(const Cell<kWidth>& a, const Cell<kWidth>& b) {
  return Each([](auto x, auto y) { return hn::Mul(x, y); }, a, b);
}
template <int kWidth>
HWY_INLINE Cell<kWidth> MulAdd(const Cell<kWidth>& a, const Cell<kWidth>& b,
                               const Cell<kWidth>& c) {
  return Each([](auto x, auto y, auto z) { return hn::MulAdd(x, y, z); }, a, b, c);
}
template <int kWidth>
HWY_INLINE Cell<kWidth> NegMulAdd(const Cell<kWidth>& a, const Cell<kWidth>& b,
                                  const Cell<kWidth>& c) {
  return Each([](auto x, auto y, auto z) { return hn::NegMulAdd(x, y, z); }, a, b, c);
}

// Where a gradient passes.
template <int kWidth>
HWY_INLINE auto PassesRelu(hn::Vec<Tag<kWidth>> value) {
  return hn::Gt(value, hn::Zero(Tag<kWidth>()));
}
template <int kWidth>
HWY_INLINE auto PassesRelu6(hn::Vec<Tag<kWidth>> value) {
  return hn::And(hn::Ge(value, hn::Zero(Tag<kWidth>())),
                 hn::Le(value, hn::Set(Tag<kWidth>(), 6.0f)));
}

// 1 / (1 + e^-x) by the formula of vector_math.h; of NaN 0, which its callers multiply by x.
template <int kWidth>
HWY_INLINE auto Sigmoid(hn::Vec<Tag<kWidth>> x) {
  constexpr Tag<kWidth> d;
  constexpr hn::RebindToSigned<Tag<kWidth>> integers;
  const auto least = hn::Set(d, -87.33654f), most = hn::Set(d, 88.72283f);
  const auto negative = hn::Neg(x), inside = hn::Min(hn::Max(negative, least), most);
  const auto rounder = hn::Set(d, 12582912.0f);  // 1.5 * 2^23
  const auto shifted = hn::MulAdd(inside, hn::Set(d, 1.44269504f), rounder);
  const auto n = hn::Sub(shifted, rounder);
  const auto r = hn::NegMulAdd(n, hn::Set(d, -2.12194440e-4f),
                               hn::NegMulAdd(n, hn::Set(d, 0.693359375f), inside));
  auto sum = hn::Set(d, 1.0f / 5040);
  for (const float coefficient : {1.0f / 720, 1.0f / 120, 1.0f / 24, 1.0f / 6, 0.5f})
    sum = hn::MulAdd(sum, r, hn::Set(d, coefficient));
  sum = hn::Add(hn::MulAdd(sum, hn::Mul(r, r), r), hn::Set(d, 1.0f));
  const auto power = hn::Sub(hn::BitCast(integers, shifted), hn::BitCast(integers, rounder)),
             half = hn::ShiftRight<1>(power), bias = hn::Set(integers, 127);
  const auto scale = [&](auto exponent) {
    return hn::BitCast(d, hn::ShiftLeft<23>(hn::Add(exponent, bias)));
  };
  const auto exp = hn::Mul(hn::Mul(sum, scale(half)), scale(hn::Sub(power, half)));
  const auto value = hn::Div(hn::Set(d, 1.0f), hn::Add(hn::Set(d, 1.0f), exp));
  return hn::IfThenElseZero(hn::Le(negative, most), value);
}

template <int kWidth>
HWY_INLINE auto Silu(hn::Vec<Tag<kWidth>> x) {
  return hn::Mul(x, Sigmoid<kWidth>(x));
}
template <int kWidth>
HWY_INLINE auto SlopeOfSilu(hn::Vec<Tag<kWidth>> x) {
  const auto one = hn::Set(Tag<kWidth>(), 1.0f), s = Sigmoid<kWidth>(x);
  return hn::Mul(s, hn::MulAdd(x, hn::Sub(one, s), one));
}
// NaN stays.
template <int kWidth>
HWY_INLINE auto HardSwish(hn::Vec<Tag<kWidth>> x) {
  constexpr Tag<kWidth> d;
  const auto shifted = hn::Add(x, hn::Set(d, 3.0f));
  const auto gate = hn::Min(hn::Set(d, 6.0f), hn::Max(hn::Zero(d), shifted));
  return hn::Mul(x, hn::Mul(gate, hn::Set(d, 1.0f / 6)));
}
template <int kWidth>
HWY_INLINE auto SlopeOfHardSwish(hn::Vec<Tag<kWidth>> x) {
  constexpr Tag<kWidth> d;
  const auto three = hn::Set(d, 3.0f), one = hn::Set(d, 1.0f);
  const auto inside = hn::Mul(hn::Add(hn::Add(x, x), three), hn::Set(d, 1.0f / 6));
  return hn::IfThenZeroElse(hn::Lt(x, hn::Neg(three)),
                            hn::IfThenElse(hn::Gt(x, three), one, inside));
}

// One bit per element of a cell; vectors of fewer than eight lanes use one byte.
template <int kWidth>
struct Bits {
  static constexpr int kOfVector = kLanes<kWidth>, kBytes = kOfVector < 8 ? 1 : kOfVector / 8;
  static constexpr int kSharing = kOfVector < 8 ? 8 / kOfVector : 1;

  template <bool kRelu6>
  static HWY_INLINE void Store(const Cell<kWidth>& value, uint8_t* bits) {
    for (int i = 0; i < Cell<kWidth>::kVectors; ++i) {
      uint8_t bytes[8];
      if constexpr (kRelu6) {
        hn::StoreMaskBits(Tag<kWidth>(), PassesRelu6<kWidth>(value.v[i]), bytes);
      } else {
        hn::StoreMaskBits(Tag<kWidth>(), PassesRelu<kWidth>(value.v[i]), bytes);
      }
      if constexpr (kSharing == 1) {
        std::memcpy(bits + i * kBytes, bytes, kBytes);
      } else {
        const int before = i % kSharing == 0 ? 0 : bits[i / kSharing];
        bits[i / kSharing] = static_cast<uint8_t>(before | (bytes[0] & ((1 << kOfVector) - 1))
                                                               << i % kSharing * kOfVector);
      }
    }
  }

  // The elements whose bit is set, zero elsewhere.
  static HWY_INLINE Cell<kWidth> Select(const Cell<kWidth>& cell, const uint8_t* bits) {
    Cell<kWidth> result;
    for (int i = 0; i < Cell<kWidth>::kVectors; ++i) {
      uint8_t bytes[8] = {};
      if constexpr (kSharing == 1) {
        std::memcpy(bytes, bits + i * kBytes, kBytes);
      } else {
        bytes[0] = static_cast<uint8_t>(bits[i / kSharing] >> i % kSharing * kOfVector &
                                        ((1 << kOfVector) - 1));
      }
      result.v[i] = hn::IfThenElseZero(hn::LoadMaskBits(Tag<kWidth>(), bytes), cell.v[i]);
    }
    return result;
  }
};

// The coefficients of a piece's channels.
template <int kWidth>
HWY_INLINE Cell<kWidth> CoefficientOf(const Lines& lines, int64_t group, const float* values) {
  return lines.broadcast ? Cell<kWidth>::Of(values[group])
                         : Cell<kWidth>::Load(values + group * kWidth);
}

// f(offset, cell number, std::true_type) for the whole cells of a piece; f(offset, cell number,
// std::false_type, count) for cells with only `count` elements.
template <int kWidth, typename F>
HWY_INLINE void ForCells(const Lines& lines, const Piece& piece, F f) {
  if (piece.width == kWidth) {
    for (int64_t i = 0; i < piece.cells; ++i)
      f(piece.offset + i * lines.stride, i, std::true_type(), kWidth);
  } else {
    for (int64_t i = 0; i < piece.cells; ++i)
      f(piece.offset + i * lines.stride, i, std::false_type(), piece.width);
  }
  if (piece.rest > 0)
    f(piece.offset + piece.cells * lines.stride, piece.cells, std::false_type(), piece.rest);
}
template <int kWidth, typename T, bool kWhole>
HWY_INLINE Cell<kWidth> Read(const T* from, std::bool_constant<kWhole>, int count) {
  if constexpr (kWhole) {
    return Cell<kWidth>::Load(from);
  } else {
    return Cell<kWidth>::LoadPart(from, count);
  }
}
template <int kWidth, typename T, bool kWhole>
HWY_INLINE void Write(const Cell<kWidth>& value, T* to, std::bool_constant<kWhole>, int count,
                      bool stream) {
  if constexpr (kWhole) {
    stream ? value.Stream(to) : value.Store(to);
  } else {
    value.StorePart(to, count);
  }
}

template <int kWidth, typename T>
void MomentsOf(const Lines& lines, const T* x, float* partials, int64_t begin, int64_t end) {
  using C = Cell<kWidth>;
  for (int64_t number = begin; number < end; ++number) {
    const Piece piece(lines, number);
    const T* from = x + piece.offset;
    const C shift =
        lines.broadcast ? C::Of(static_cast<float>(from[0])) : C::LoadPart(from, piece.width);
    C sum[2] = {C::Of(0), C::Of(0)}, squares[2] = {C::Of(0), C::Of(0)};
    const auto add = [&](const C& value, int k) {
      const C distance = value - shift;
      sum[k] = sum[k] + distance;
      squares[k] = MulAdd(distance, distance, squares[k]);
    };
    if (piece.width == kWidth) {
      int64_t i = 0;
      for (; i + 1 < piece.cells; i += 2) {
        add(C::Load(from + i * lines.stride), 0);
        add(C::Load(from + (i + 1) * lines.stride), 1);
      }
      if (i < piece.cells) add(C::Load(from + i * lines.stride), 0);
    } else {
      for (int64_t i = 0; i < piece.cells; ++i)
        add(C::LoadPart(from + i * lines.stride, piece.width), 0);
    }
    const C total = sum[0] + sum[1], all_squares = squares[0] + squares[1];
    float* mean = partials + number * lines.partials_of_piece();
    if (!lines.broadcast) {
      const C per_cell = C::Of(1 / static_cast<float>(piece.cells));
      MulAdd(total, per_cell, shift).Store(mean);
      NegMulAdd(total * total, per_cell, all_squares).Store(mean + kWidth);
      continue;
    }
    float one_sum = total.Total(), one_squares = all_squares.Total();
    for (int i = 0; i < piece.rest; ++i) {
      const float distance =
          static_cast<float>(from[piece.cells * lines.stride + i]) - static_cast<float>(from[0]);
      one_sum += distance;
      one_squares += distance * distance;
    }
    const float count = static_cast<float>(piece.cells * kWidth + piece.rest);
    mean[0] = static_cast<float>(from[0]) + one_sum / count;
    mean[1] = one_squares - one_sum * one_sum / count;
  }
}

template <int kWidth, typename T, bool kSum, Epilogue::Act kAct>
void ApplyTo(const Lines& lines, const Application<T>& a, int64_t begin, int64_t end) {
  using C = Cell<kWidth>;
  for (int64_t number = begin; number < end; ++number) {
    const Piece piece(lines, number);
    const C mean = CoefficientOf<kWidth>(lines, piece.group, a.of.mean),
            scale = CoefficientOf<kWidth>(lines, piece.group, a.of.scale);
    const C shift = CoefficientOf<kWidth>(lines, piece.group, a.of.shift);
    uint8_t* bits = a.bits ? a.bits + number * lines.mask_bytes_of_piece() : nullptr;
    ForCells<kWidth>(lines, piece, [&](int64_t at, int64_t i, auto whole, int count) {
      C value = MulAdd(Read<kWidth>(a.x + at, whole, count) - mean, scale, shift);
      if constexpr (kSum) value = value + Read<kWidth>(a.sum + at, whole, count);
      if (bits)
        Bits<kWidth>::template Store<kAct == Epilogue::kRelu6>(value, bits + i * (kWidth / 8));
      if constexpr (kAct == Epilogue::kSilu)
        value = Each([](auto v) { return Silu<kWidth>(v); }, value);
      if constexpr (kAct == Epilogue::kHardSwish)
        value = Each([](auto v) { return HardSwish<kWidth>(v); }, value);
      // NaN stays.
      if constexpr (kAct == Epilogue::kRelu || kAct == Epilogue::kRelu6)
        value = Each([](auto v) { return hn::Max(hn::Zero(Tag<kWidth>()), v); }, value);
      if constexpr (kAct == Epilogue::kRelu6)
        value = Each([](auto v) { return hn::Min(hn::Set(Tag<kWidth>(), 6.0f), v); }, value);
      Write(value, a.y + at, whole, count, a.stream);
    });
  }
  if (a.stream) hwy::FlushStream();
}

// The gradient after the gate, for one cell; `centred` is x - mean.
template <int kWidth, typename T, Gate kGate>
struct GateOf {
  using C = Cell<kWidth>;
  C scale, shift;
  const uint8_t* bits;

  GateOf(const Lines& lines, const Gradient<T>& g, const Piece& piece, int64_t number)
      : scale(CoefficientOf<kWidth>(lines, piece.group, g.of.scale)),
        shift(CoefficientOf<kWidth>(lines, piece.group, g.of.shift)),
        bits(kGate == Gate::kBits ? g.bits + number * lines.mask_bytes_of_piece() : nullptr) {}
  HWY_INLINE C operator()(const C& head, const C& centred, int64_t cell) const {
    if constexpr (kGate == Gate::kBits)
      return Bits<kWidth>::Select(head, bits + cell * (kWidth / 8));
    if constexpr (kGate == Gate::kOpen) return head;
    const C value = MulAdd(centred, scale, shift);  // bit for bit as in ApplyTo
    if constexpr (kGate == Gate::kSilu) {
      return Each([](auto g, auto v) { return hn::Mul(g, SlopeOfSilu<kWidth>(v)); }, head, value);
    } else if constexpr (kGate == Gate::kHardSwish) {
      return Each([](auto g, auto v) { return hn::Mul(g, SlopeOfHardSwish<kWidth>(v)); }, head,
                  value);
    } else if constexpr (kGate == Gate::kRelu) {
      return Each([](auto g, auto v) { return hn::IfThenElseZero(PassesRelu<kWidth>(v), g); }, head,
                  value);
    } else {
      return Each([](auto g, auto v) { return hn::IfThenElseZero(PassesRelu6<kWidth>(v), g); },
                  head, value);
    }
  }
};

template <int kWidth, typename T, Gate kGate>
void GradientSumsOf(const Lines& lines, const Gradient<T>& g, float* partials, int64_t begin,
                    int64_t end) {
  using C = Cell<kWidth>;
  for (int64_t number = begin; number < end; ++number) {
    const Piece piece(lines, number);
    const C mean = CoefficientOf<kWidth>(lines, piece.group, g.of.mean);
    const GateOf<kWidth, T, kGate> gate(lines, g, piece, number);
    C sum = C::Of(0), along = C::Of(0);
    ForCells<kWidth>(lines, piece, [&](int64_t at, int64_t i, auto whole, int count) {
      const C centred = Read<kWidth>(g.x + at, whole, count) - mean;
      const C gradient = gate(Read<kWidth>(g.head + at, whole, count), centred, i);
      sum = sum + gradient;
      along = MulAdd(gradient, centred, along);
    });
    float* to = partials + number * lines.partials_of_piece();
    if (lines.broadcast) {
      to[0] = sum.Total();
      to[1] = along.Total();
    } else {
      sum.Store(to);
      along.Store(to + kWidth);
    }
  }
}

template <int kWidth, typename T, Gate kGate>
void DifferentiateBy(const Lines& lines, const Gradient<T>& g, int64_t begin, int64_t end) {
  using C = Cell<kWidth>;
  for (int64_t number = begin; number < end; ++number) {
    const Piece piece(lines, number);
    const auto of = [&](const float* values) {
      return CoefficientOf<kWidth>(lines, piece.group, values);
    };
    const C mean = of(g.of.mean), scale = of(g.of.scale), offset = of(g.offset),
            slope = of(g.slope);
    const GateOf<kWidth, T, kGate> gate(lines, g, piece, number);
    ForCells<kWidth>(lines, piece, [&](int64_t at, int64_t i, auto whole, int count) {
      const C centred = Read<kWidth>(g.x + at, whole, count) - mean;
      const C gradient = gate(Read<kWidth>(g.head + at, whole, count), centred, i);
      if (g.dx) {
        C dx = NegMulAdd(centred, slope, MulAdd(gradient, scale, offset));
        if (g.add_dx) dx = dx + Read<kWidth>(g.dx + at, whole, count);
        Write(dx, g.dx + at, whole, count, g.stream_dx);
      }
      if (g.dsum) {
        Write(g.add_dsum ? gradient + Read<kWidth>(g.dsum + at, whole, count) : gradient,
              g.dsum + at, whole, count, g.stream_dsum);
      }
    });
  }
  if (g.stream_dx || g.stream_dsum) hwy::FlushStream();
}

// Choices outside the loops.
template <typename F>
void ByWidth(const Lines& lines, F f) {
  if (lines.width == 16) return f(std::integral_constant<int, 16>());
  f(std::integral_constant<int, 8>());
}
template <typename F>
void ByGate(const Lines& lines, Gate gate, F f) {
  ByWidth(lines, [&](auto width) {
    switch (gate) {
      case Gate::kOpen:
        return f(width, std::integral_constant<Gate, Gate::kOpen>());
      case Gate::kRelu:
        return f(width, std::integral_constant<Gate, Gate::kRelu>());
      case Gate::kRelu6:
        return f(width, std::integral_constant<Gate, Gate::kRelu6>());
      case Gate::kBits:
        return f(width, std::integral_constant<Gate, Gate::kBits>());
      case Gate::kSilu:
        return f(width, std::integral_constant<Gate, Gate::kSilu>());
      case Gate::kHardSwish:
        return f(width, std::integral_constant<Gate, Gate::kHardSwish>());
    }
  });
}

template <typename T>
void MomentsByWidth(const Lines& lines, const T* x, float* partials, int64_t begin, int64_t end) {
  ByWidth(lines, [&](auto width) { MomentsOf<width()>(lines, x, partials, begin, end); });
}
template <typename T>
void ApplyByWidth(const Lines& lines, const Application<T>& a, int64_t begin, int64_t end) {
  ByWidth(lines, [&](auto width) {
    const auto run = [&](auto sum) {
      if (a.act == Epilogue::kRelu6)
        return ApplyTo<width(), T, sum(), Epilogue::kRelu6>(lines, a, begin, end);
      if (a.act == Epilogue::kRelu)
        return ApplyTo<width(), T, sum(), Epilogue::kRelu>(lines, a, begin, end);
      ApplyTo<width(), T, sum(), Epilogue::kNone>(lines, a, begin, end);
    };
    if (a.sum) return run(std::true_type());
    if (a.act == Epilogue::kSilu)
      return ApplyTo<width(), T, false, Epilogue::kSilu>(lines, a, begin, end);
    if (a.act == Epilogue::kHardSwish)
      return ApplyTo<width(), T, false, Epilogue::kHardSwish>(lines, a, begin, end);
    run(std::false_type());
  });
}
template <typename T>
void GradientSumsByGate(const Lines& lines, const Gradient<T>& g, float* partials, int64_t begin,
                        int64_t end) {
  ByGate(lines, g.gate, [&](auto width, auto gate) {
    GradientSumsOf<width(), T, gate()>(lines, g, partials, begin, end);
  });
}
template <typename T>
void DifferentiateByGate(const Lines& lines, const Gradient<T>& g, int64_t begin, int64_t end) {
  ByGate(lines, g.gate,
         [&](auto width, auto gate) { DifferentiateBy<width(), T, gate()>(lines, g, begin, end); });
}

// A table of one type's kernels: run-time selection needs names without angle brackets.
template <typename T>
constexpr Kernels<T> kKernels = {MomentsByWidth<T>, ApplyByWidth<T>, GradientSumsByGate<T>,
                                 DifferentiateByGate<T>};
const Kernels<float>& KernelsOfFloat() {
  return kKernels<float>;
}
const Kernels<bfloat16>& KernelsOfBfloat16() {
  return kKernels<bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::batch_norm
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::batch_norm {
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

}  // namespace mxtrain::batch_norm

#endif  // HWY_ONCE
