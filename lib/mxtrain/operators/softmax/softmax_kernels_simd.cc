// SPDX-License-Identifier: Apache-2.0
// softmax_kernels.h, compiled once per instruction set; the best supported set is selected at run
// time.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "mxtrain/operators/softmax/softmax_kernels_simd.cc"
#include <hwy/foreach_target.h>  // before the others

#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include <algorithm>
#include <type_traits>

#include "mxtrain/base/dtype.h"
#include "mxtrain/operators/softmax/row_vectors.h"
#include "mxtrain/operators/softmax/softmax_kernels.h"

#include "mxtrain/operators/softmax/row_exponentials.h"  // after row_vectors.h

HWY_BEFORE_NAMESPACE();
namespace mxtrain::softmax {
namespace HWY_NAMESPACE {
using namespace row_vectors::HWY_NAMESPACE;
using namespace row_exponentials::HWY_NAMESPACE;

HWY_INLINE Vector LogOf(Vector x) {
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Log(Tag(), x));
}

// The element whose exponential is the largest: of the smallest elements if the scale is negative.
template <bool kNegative>
HWY_INLINE Vector Leading(Vector a, Vector b) {
  if constexpr (kNegative) {
    return hn::Min(a, b);
  } else {
    return hn::Max(a, b);
  }
}
// Of a row of n > 0 elements, in all lanes. If there is a NaN it may be any element: the NaN makes
// the sum of exponentials NaN.
template <bool kNegative, typename T>
HWY_INLINE Vector LeadingOf(const T* x, int64_t n) {
  Vector a = Of(static_cast<float>(x[0])), b = a, c = a, d = a;
  int64_t k = 0;
  for (; k + 4 * kLanes <= n; k += 4 * kLanes) {
    a = Leading<kNegative>(a, Load(x + k));
    b = Leading<kNegative>(b, Load(x + k + kLanes));
    c = Leading<kNegative>(c, Load(x + k + 2 * kLanes));
    d = Leading<kNegative>(d, Load(x + k + 3 * kLanes));
  }
  for (; k + kLanes <= n; k += kLanes) a = Leading<kNegative>(a, Load(x + k));
  if (k < n) {
    const auto present = hn::FirstN(Tag(), static_cast<size_t>(n - k));
    b = Leading<kNegative>(b, hn::IfThenElse(present, LoadPart(x + k, n - k), b));
  }
  const Vector all = Leading<kNegative>(Leading<kNegative>(a, b), Leading<kNegative>(c, d));
  if constexpr (kNegative) {
    return hn::MinOfLanes(Tag(), all);
  } else {
    return hn::MaxOfLanes(Tag(), all);
  }
}

// The exponents of a row: scale (x - lead) - offset.
struct Exponents {
  Vector scale, lead;
  HWY_INLINE Vector operator()(Vector x) const { return hn::Mul(hn::Sub(x, lead), scale); }
  HWY_INLINE Vector operator()(Vector x, Vector offset) const {
    return hn::MulSub(hn::Sub(x, lead), scale, offset);
  }
};

// The sum of the exponentials of a row, in all lanes. If `kept`, they are written to it.
template <bool kKeep, typename T>
HWY_INLINE Vector SumOfRow(const Exponents& exponents, const T* x, [[maybe_unused]] T* kept,
                           int64_t n) {
  Vector sum = hn::Zero(Tag()), other = sum;
  int64_t k = 0;
  for (; k + 2 * kLanes <= n; k += 2 * kLanes) {
    const Vector e = ExpOfNegative(exponents(Load(x + k))),
                 f = ExpOfNegative(exponents(Load(x + k + kLanes)));
    sum = hn::Add(sum, e);
    other = hn::Add(other, f);
    if constexpr (kKeep) {
      Store(e, kept + k);
      Store(f, kept + k + kLanes);
    }
  }
  ForVectors(k, n, [&](auto whole, int64_t at, int64_t count) {
    const Vector e = ExpOfNegative(exponents(Read<whole()>(x + at, count)));
    sum = hn::Add(sum, whole() ? e : KeepFirst(e, count));
    if constexpr (kKeep) Write<whole()>(e, kept + at, count);
  });
  return hn::SumOfLanes(Tag(), hn::Add(sum, other));
}

template <bool kLog, typename T>
HWY_INLINE void ForwardRow(const Form& form, const T* x, T* y, int64_t n) {
  constexpr bool kKeep = !kLog && std::is_same_v<T, float>;
  const Exponents exponents{Of(form.scale),
                            form.scale < 0 ? LeadingOf<true>(x, n) : LeadingOf<false>(x, n)};
  const Vector sum = SumOfRow<kKeep>(exponents, x, y, n);
  if constexpr (kKeep) {
    const Vector factor = hn::Div(Of(1.0f), sum);
    ForVectors(0, n, [&](auto whole, int64_t k, int64_t count) {
      Write<whole()>(hn::Mul(Read<whole()>(y + k, count), factor), y + k, count);
    });
  } else {
    const Vector offset = LogOf(sum);
    ForVectors(0, n, [&](auto whole, int64_t k, int64_t count) {
      const Vector value = exponents(Read<whole()>(x + k, count), offset);
      Write<whole()>(kLog ? value : ExpOfNegative(value), y + k, count);
    });
  }
}

template <typename T>
void ForwardRows(const Form& form, const T* x, T* y, int64_t rows, int64_t classes, int64_t count) {
  for (int64_t row = 0; row < rows; ++row, x += classes, y += classes) {
    if (count > 0) {
      if (form.log) {
        ForwardRow<true>(form, x, y, count);
      } else {
        ForwardRow<false>(form, x, y, count);
      }
    }
    std::fill(y + count, y + classes, T(0.0f));
  }
}

// Adjacent columns of a matrix: `kVectors` whole vectors, or, for 0, `width` < kLanes columns.
template <int kVectors>
struct Columns {
  static constexpr bool kWhole = kVectors > 0;
  static constexpr int kCount = kWhole ? kVectors : 1;
  int64_t classes, inner, width;

  // Vector v of row k.
  template <typename T>
  HWY_INLINE Vector At(const T* matrix, int64_t k, int v) const {
    return Read<kWhole>(matrix + k * inner + v * kLanes, width);
  }
  template <typename T>
  HWY_INLINE void Put(Vector value, T* matrix, int64_t k, int v) const {
    Write<kWhole>(value, matrix + k * inner + v * kLanes, width);
  }
};

template <bool kLog, bool kNegative, int kVectors, typename T>
HWY_INLINE void ForwardColumn(const Columns<kVectors>& columns, float scale, const T* x, T* y) {
  constexpr bool kKeep = !kLog && std::is_same_v<T, float>;
  constexpr int kCount = Columns<kVectors>::kCount;
  Vector sum[kCount];
  Exponents exponents[kCount];
  for (int v = 0; v < kCount; ++v) {
    exponents[v] = {Of(scale), columns.At(x, 0, v)};
    sum[v] = hn::Zero(Tag());
  }
  for (int64_t k = 1; k < columns.classes; ++k) {
    for (int v = 0; v < kCount; ++v)
      exponents[v].lead = Leading<kNegative>(exponents[v].lead, columns.At(x, k, v));
  }
  for (int64_t k = 0; k < columns.classes; ++k) {
    for (int v = 0; v < kCount; ++v) {
      const Vector e = ExpOfNegative(exponents[v](columns.At(x, k, v)));
      sum[v] = hn::Add(sum[v], e);
      if constexpr (kKeep) columns.Put(e, y, k, v);
    }
  }
  for (int v = 0; v < kCount; ++v) sum[v] = kKeep ? hn::Div(Of(1.0f), sum[v]) : LogOf(sum[v]);
  for (int64_t k = 0; k < columns.classes; ++k) {
    for (int v = 0; v < kCount; ++v) {
      if constexpr (kKeep) {
        columns.Put(hn::Mul(columns.At(y, k, v), sum[v]), y, k, v);
      } else {
        const Vector value = exponents[v](columns.At(x, k, v), sum[v]);
        columns.Put(kLog ? value : ExpOfNegative(value), y, k, v);
      }
    }
  }
}

// f(columns, first column) for groups of the columns [begin, end).
template <typename F>
HWY_INLINE void ForGroups(int64_t classes, int64_t inner, int64_t begin, int64_t end, F f) {
  int64_t i = begin;
  for (; i + 4 * kLanes <= end; i += 4 * kLanes) f(Columns<4>{classes, inner, kLanes}, i);
  for (; i + kLanes <= end; i += kLanes) f(Columns<1>{classes, inner, kLanes}, i);
  if (i < end) f(Columns<0>{classes, inner, end - i}, i);
}

template <typename T>
void ForwardColumns(const Form& form, const T* x, T* y, int64_t classes, int64_t inner,
                    int64_t begin, int64_t end) {
  ForGroups(classes, inner, begin, end, [&](const auto& columns, int64_t i) {
    if (form.log) {
      ForwardColumn<true, false>(columns, form.scale, x + i, y + i);
    } else if (form.scale < 0) {
      ForwardColumn<false, true>(columns, form.scale, x + i, y + i);
    } else {
      ForwardColumn<false, false>(columns, form.scale, x + i, y + i);
    }
  });
}

// A term of the sum, and the gradient, of one element.
template <bool kLog>
HWY_INLINE Vector Term(Vector sum, Vector head, Vector y) {
  if constexpr (kLog) {
    return hn::Add(sum, head);
  } else {
    return hn::MulAdd(head, y, sum);
  }
}
template <bool kLog>
HWY_INLINE Vector Gradient(Vector scale, Vector sum, Vector head, Vector y) {
  if constexpr (kLog) {
    return hn::Mul(scale, hn::NegMulAdd(ExpOfNegative(y), sum, head));
  } else {
    return hn::Mul(hn::Mul(scale, y), hn::Sub(head, sum));
  }
}

template <bool kLog, typename T>
HWY_INLINE void BackwardRow(float scale, const T* head, const T* y, T* dx, bool add, int64_t n) {
  Vector sum = hn::Zero(Tag()), other = sum;
  int64_t k = 0;
  for (; k + 2 * kLanes <= n; k += 2 * kLanes) {
    sum = Term<kLog>(sum, Load(head + k), Load(y + k));
    other = Term<kLog>(other, Load(head + k + kLanes), Load(y + k + kLanes));
  }
  ForVectors(k, n, [&](auto whole, int64_t at, int64_t count) {
    sum = Term<kLog>(sum, Read<whole()>(head + at, count), Read<whole()>(y + at, count));
  });
  sum = hn::SumOfLanes(Tag(), hn::Add(sum, other));
  ForVectors(0, n, [&](auto whole, int64_t at, int64_t count) {
    Vector value = Gradient<kLog>(Of(scale), sum, Read<whole()>(head + at, count),
                                  Read<whole()>(y + at, count));
    if (add) value = hn::Add(value, Read<whole()>(dx + at, count));
    Write<whole()>(value, dx + at, count);
  });
}

template <typename T>
void BackwardRows(const Form& form, const T* head, const T* y, T* dx, bool add, int64_t rows,
                  int64_t classes, int64_t count) {
  for (int64_t row = 0; row < rows; ++row, head += classes, y += classes, dx += classes) {
    if (form.log) {
      BackwardRow<true>(form.scale, head, y, dx, add, count);
    } else {
      BackwardRow<false>(form.scale, head, y, dx, add, count);
    }
    if (!add) std::fill(dx + count, dx + classes, T(0.0f));
  }
}

template <bool kLog, int kVectors, typename T>
HWY_INLINE void BackwardColumn(const Columns<kVectors>& columns, float scale, const T* head,
                               const T* y, T* dx, bool add) {
  constexpr int kCount = Columns<kVectors>::kCount;
  Vector sum[kCount];
  for (int v = 0; v < kCount; ++v) sum[v] = hn::Zero(Tag());
  for (int64_t k = 0; k < columns.classes; ++k) {
    for (int v = 0; v < kCount; ++v)
      sum[v] = Term<kLog>(sum[v], columns.At(head, k, v), columns.At(y, k, v));
  }
  for (int64_t k = 0; k < columns.classes; ++k) {
    for (int v = 0; v < kCount; ++v) {
      Vector value = Gradient<kLog>(Of(scale), sum[v], columns.At(head, k, v), columns.At(y, k, v));
      if (add) value = hn::Add(value, columns.At(dx, k, v));
      columns.Put(value, dx, k, v);
    }
  }
}

template <typename T>
void BackwardColumns(const Form& form, const T* head, const T* y, T* dx, bool add, int64_t classes,
                     int64_t inner, int64_t begin, int64_t end) {
  ForGroups(classes, inner, begin, end, [&](const auto& columns, int64_t i) {
    if (form.log) {
      BackwardColumn<true>(columns, form.scale, head + i, y + i, dx + i, add);
    } else {
      BackwardColumn<false>(columns, form.scale, head + i, y + i, dx + i, add);
    }
  });
}

// A table of one type's kernels: run-time selection needs names without angle brackets.
template <typename T>
constexpr Kernels<T> kKernels = {ForwardRows<T>, ForwardColumns<T>, BackwardRows<T>,
                                 BackwardColumns<T>};
const Kernels<float>& KernelsOfFloat() {
  return kKernels<float>;
}
const Kernels<bfloat16>& KernelsOfBfloat16() {
  return kKernels<bfloat16>;
}

}  // namespace HWY_NAMESPACE
}  // namespace mxtrain::softmax
HWY_AFTER_NAMESPACE();

#if HWY_ONCE

namespace mxtrain::softmax {
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

}  // namespace mxtrain::softmax

#endif  // HWY_ONCE
