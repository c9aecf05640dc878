// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operators/dot/matrix_product.h"

#include <algorithm>

#include "mxtrain/base/math.h"
#include "mxtrain/operator/elementwise.h"

namespace mxtrain::dot {
namespace {

constexpr int64_t kBlock = 64;  // columns that are summed at a time

// sums[j] += a b[j * stride].
template <typename T>
[[gnu::always_inline]] inline void AddKernel(double a, const T* b, int64_t stride, int64_t n,
                                             double* sums) {
  if (stride == 1) {
    for (int64_t j = 0; j < n; ++j) sums[j] += a * static_cast<double>(b[j]);
  } else {
    for (int64_t j = 0; j < n; ++j) sums[j] += a * static_cast<double>(b[j * stride]);
  }
}
MXTRAIN_SIMD void AddKernels(const float* a, const MatrixView& va, const float* b,
                             const MatrixView& vb, int64_t n, double* sums) {
  for (int64_t k = 0; k < va.columns; ++k)
    AddKernel(a[k * va.column_stride], b + k * vb.row_stride, vb.column_stride, n, sums);
}
template <typename T>
void AddKernels(const T* a, const MatrixView& va, const T* b, const MatrixView& vb, int64_t n,
                double* sums) {
  for (int64_t k = 0; k < va.columns; ++k) {
    AddKernel(static_cast<double>(a[k * va.column_stride]), b + k * vb.row_stride, vb.column_stride,
              n, sums);
  }
}

template <typename T>
void Multiply(const T* a, const MatrixView& va, const T* b, const MatrixView& vb, T* c,
              const MatrixView& vc, OpReqType req) {
  const int64_t blocks = CeilDivide(vc.columns, kBlock);
  const int64_t grain =
      std::max<int64_t>(1, kParallelGrain / std::max<int64_t>(1, va.columns * kBlock));
  ParallelFor(vc.batch * vc.rows * blocks, grain, [&](int64_t begin, int64_t end) {
    for (int64_t index = begin; index < end; ++index) {
      const int64_t matrix = index / (vc.rows * blocks), row = index / blocks % vc.rows;
      const int64_t first = index % blocks * kBlock, n = std::min(kBlock, vc.columns - first);
      double sums[kBlock] = {};
      AddKernels(a + matrix * va.batch_stride + row * va.row_stride, va,
                 b + matrix * vb.batch_stride + first * vb.column_stride, vb, n, sums);
      T* out = c + matrix * vc.batch_stride + row * vc.row_stride + first * vc.column_stride;
      for (int64_t j = 0; j < n; ++j)
        Assign(req, out, j * vc.column_stride, static_cast<ComputeOf<T>>(sums[j]));
    }
  });
}

}  // namespace

void MultiplyMatrices(const OnCpu&, Math, const TBlob& a, const MatrixView& va, const TBlob& b,
                      const MatrixView& vb, const TBlob& c, const MatrixView& vc, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  SwitchFloating(a.type, "a matrix product", [&](auto tag) {
    using T = typename decltype(tag)::type;
    Multiply<T>(a.dptr<T>(), va, b.dptr<T>(), vb, c.dptr<T>(), vc, req);
  });
}

double ProductCost(const MatrixView& a, const MatrixView& b) {
  constexpr double kNanosecondsPerProduct = 0.5;
  return kNanosecondsPerProduct * static_cast<double>(a.batch) * static_cast<double>(a.rows) *
         static_cast<double>(a.columns) * static_cast<double>(b.columns);
}

}  // namespace mxtrain::dot
