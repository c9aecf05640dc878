// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks of CUDA, cuBLAS and cuDNN calls: MXTRAIN_CHECK_CUDA(cudaMemsetAsync(...)) throws an Error
// with the call and its message. Out of memory is kMemory, everything else kDevice. After a sticky
// error the device is unusable in this process; the message says so.
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <cudnn.h>

namespace mxtrain::cuda {

[[noreturn]] void ThrowFailed(cudaError_t status, const char* call);
[[noreturn]] void ThrowFailed(cublasStatus_t status, const char* call);
[[noreturn]] void ThrowFailed(cudnnStatus_t status, const char* call);

inline void Check(cudaError_t status, const char* call) {
  if (status != cudaSuccess) ThrowFailed(status, call);
}
inline void Check(cublasStatus_t status, const char* call) {
  if (status != CUBLAS_STATUS_SUCCESS) ThrowFailed(status, call);
}
inline void Check(cudnnStatus_t status, const char* call) {
  if (status != CUDNN_STATUS_SUCCESS) ThrowFailed(status, call);
}

// Whether an error stays with the device's context until the process ends.
bool IsSticky(cudaError_t status);

}  // namespace mxtrain::cuda

#define MXTRAIN_CHECK_CUDA(call) ::mxtrain::cuda::Check((call), #call)
