// SPDX-License-Identifier: Apache-2.0
#pragma once
// Matrix products by cuBLAS.
#include "mxtrain/base/dtype.h"
#include "mxtrain/device/cuda/matrix_arrangement.h"
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain::cuda {

// How float32 products are computed; sums are always float32. kTf32 rounds the factors to 10 bits
// of fraction; kPlain may split a sum; kPedantic is the plain sum.
enum class ProductMath { kTf32, kPlain, kPedantic };

// `batch` products of one shape; consecutive matrices are `batch_stride` elements apart.
struct Matrices {
  void* data = nullptr;
  MatrixPlaces places;
  int64_t batch_stride = 0;
};

// c = a b, or += a b. All hold elements of `type`, a floating type; sums are in float32, for double
// in double. `a` and `b` are only read.
void MultiplyMatrices(CudaStream& stream, DType type, ProductMath math, int64_t batch,
                      const Matrices& a, const Matrices& b, const Matrices& c, bool add);

}  // namespace mxtrain::cuda
