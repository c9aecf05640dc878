// SPDX-License-Identifier: Apache-2.0
#pragma once
// matrix_product.h on the GPU, by cuBLAS. The rows or the columns of every matrix are contiguous.
#include "mxtrain/device/cuda/matrix_product.h"
#include "mxtrain/operator/identity.cuh"
#include "mxtrain/operators/dot/matrix_product.h"

namespace mxtrain::dot {

inline cuda::ProductMath ProductMathOf(Math math) {
  if (math == Math::kTf32) return cuda::ProductMath::kTf32;
  return math == Math::kExact ? cuda::ProductMath::kPedantic : cuda::ProductMath::kPlain;
}

inline cuda::Matrices MatricesOf(const TBlob& blob, const MatrixView& v) {
  return {blob.data, {v.rows, v.columns, v.row_stride, v.column_stride}, v.batch_stride};
}

// Sums in float32, for double in double. The views of c cover its array.
inline void MultiplyMatrices(const OnGpu& device, Math math, const TBlob& a, const MatrixView& va,
                             const TBlob& b, const MatrixView& vb, const TBlob& c,
                             const MatrixView& vc, OpReqType req) {
  if (req == OpReqType::kNullOp) return;
  if (va.columns == 0) return ZeroBlob(device, req, c);
  if (!IsFloating(c.type))
    Throw(ErrorKind::kConfig, "a matrix product takes floating types, not {}", NameOf(c.type));
  cuda::MultiplyMatrices(StreamOf(device.ctx), c.type, ProductMathOf(math), vc.batch,
                         MatricesOf(a, va), MatricesOf(b, vb), MatricesOf(c, vc),
                         req == OpReqType::kAddTo);
}

}  // namespace mxtrain::dot
