#pragma once
// Products of matrices by cuBLAS.
#include "mxtrain/base/dtype.h"
#include "mxtrain/device/cuda/matrix_arrangement.h"
#include "mxtrain/device/cuda/stream.h"

namespace mxtrain::cuda {

// How products of float32 are formed; sums are in float32 always. kTf32 rounds the factors to 10 bits of fraction; kPlain may cut a sum into
// parts; kPedantic is the plain sum alone.
enum class ProductMath { kTf32, kPlain, kPedantic };

// `batch` products of one shape, each matrix `batch_stride` elements behind the one before it.
struct Matrices {
  void* data = nullptr;
  MatrixPlaces places;
  int64_t batch_stride = 0;
};

// c = a b, or += a b. All hold elements of `type`, a floating type; sums are in float32, of double in double. `a` and `b` are only read.
void MultiplyMatrices(CudaStream& stream, DType type, ProductMath math, int64_t batch, const Matrices& a, const Matrices& b, const Matrices& c,
                      bool add);

}  // namespace mxtrain::cuda
