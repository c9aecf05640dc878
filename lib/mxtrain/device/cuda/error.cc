// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/error.h"

#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

// "cudaMemcpyAsync(a, b, n)" -> "cudaMemcpyAsync": arguments mean little without the code.
std::string NameOfCall(const std::string& call) {
  return call.substr(0, call.find('('));
}

}  // namespace

bool IsSticky(cudaError_t status) {
  switch (status) {
    case cudaErrorIllegalAddress:
    case cudaErrorLaunchTimeout:
    case cudaErrorAssert:
    case cudaErrorHardwareStackError:
    case cudaErrorIllegalInstruction:
    case cudaErrorMisalignedAddress:
    case cudaErrorInvalidAddressSpace:
    case cudaErrorInvalidPc:
    case cudaErrorLaunchFailure:
    case cudaErrorECCUncorrectable:
    case cudaErrorNvlinkUncorrectable:
    case cudaErrorContained:
    case cudaErrorExternalDevice:
    case cudaErrorTensorMemoryLeak:
    case cudaErrorUnknown:
      return true;
    default:
      return false;
  }
}

void ThrowFailed(cudaError_t status, const char* call) {
  cudaGetLastError();  // clear a non-sticky error, so that the next launch is not blamed for it
  const ErrorKind kind =
      status == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kDevice;
  Throw(kind, "{} failed: {} ({}){}", NameOfCall(call), cudaGetErrorString(status),
        cudaGetErrorName(status),
        IsSticky(status) ? "; the device is unusable in this process: restart the program" : "");
}

void ThrowFailed(cublasStatus_t status, const char* call) {
  const ErrorKind kind =
      status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  Throw(kind, "{} failed: {} ({})", NameOfCall(call), cublasGetStatusString(status),
        cublasGetStatusName(status));
}

void ThrowFailed(cudnnStatus_t status, const char* call) {
  const ErrorKind kind =
      status == CUDNN_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  Throw(kind, "{} failed: {}{}{}", NameOfCall(call), cudnnGetErrorString(status),
        detail[0] ? ": " : "", detail);
}

}  // namespace mxtrain::cuda
