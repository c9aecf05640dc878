// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/matrix_product.h"

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

cudaDataType TypeOf(DType type) {
  switch (type) {
    case DType::kFloat32:
      return CUDA_R_32F;
    case DType::kFloat64:
      return CUDA_R_64F;
    case DType::kFloat16:
      return CUDA_R_16F;
    case DType::kBfloat16:
      return CUDA_R_16BF;
    default:
      Throw(ErrorKind::kBug, "cuBLAS does not multiply {}", NameOf(type));
  }
}

cublasComputeType_t ComputeTypeOf(DType type, ProductMath math) {
  if (type == DType::kFloat64)
    return math == ProductMath::kPedantic ? CUBLAS_COMPUTE_64F_PEDANTIC : CUBLAS_COMPUTE_64F;
  if (type == DType::kFloat32 && math == ProductMath::kTf32) return CUBLAS_COMPUTE_32F_FAST_TF32;
  return math == ProductMath::kPedantic ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
}

cublasOperation_t OperationOf(const Factor& factor) {
  return factor.transposed ? CUBLAS_OP_T : CUBLAS_OP_N;
}

}  // namespace

void MultiplyMatrices(CudaStream& stream, DType type, ProductMath math, int64_t batch,
                      const Matrices& a, const Matrices& b, const Matrices& c, bool add) {
  const ProductArrangement p = Arrange(a.places, b.places, c.places);
  if (p.m == 0 || p.n == 0 || batch == 0) return;
  const Matrices &first = p.swapped ? b : a, &second = p.swapped ? a : b;
  const float one = 1, beta = add ? 1 : 0;
  const double wide_one = 1, wide_beta = beta;
  const bool wide = type == DType::kFloat64;
  const void* const alpha_of_type = wide ? static_cast<const void*>(&wide_one) : &one;
  const void* const beta_of_type = wide ? static_cast<const void*>(&wide_beta) : &beta;
  const cudaDataType element = TypeOf(type);
  MXTRAIN_CHECK_CUDA(cublasGemmStridedBatchedEx_64(
      stream.cublas(), OperationOf(p.first), OperationOf(p.second), p.m, p.n, p.k, alpha_of_type,
      first.data, element, p.first.leading, first.batch_stride, second.data, element,
      p.second.leading, second.batch_stride, beta_of_type, c.data, element, p.leading,
      c.batch_stride, batch, ComputeTypeOf(type, math), CUBLAS_GEMM_DEFAULT));
}

}  // namespace mxtrain::cuda
