#include "mxtrain/device/cuda/error.h"

#include <string>

#include "mxtrain/base/error.h"

namespace mxtrain::cuda {
namespace {

// "cudaMemcpyAsync(a, b, n)" -> "cudaMemcpyAsync": what the call was given says little without the code.
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
  cudaGetLastError();  // one that does not stick is forgotten, so that the next launch is not blamed for it
  const ErrorKind kind = status == cudaErrorMemoryAllocation ? ErrorKind::kMemory : ErrorKind::kDevice;
  Throw(kind, "{} failed: {} ({}){}", NameOfCall(call), cudaGetErrorString(status), cudaGetErrorName(status),
        IsSticky(status) ? "; the device computes nothing more in this process: start it anew" : "");
}

void ThrowFailed(cublasStatus_t status, const char* call) {
  const ErrorKind kind = status == CUBLAS_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  Throw(kind, "{} failed: {} ({})", NameOfCall(call), cublasGetStatusString(status), cublasGetStatusName(status));
}

void ThrowFailed(cudnnStatus_t status, const char* call) {
  const ErrorKind kind = status == CUDNN_STATUS_ALLOC_FAILED ? ErrorKind::kMemory : ErrorKind::kDevice;
  char detail[512] = "";
  cudnnGetLastErrorString(detail, sizeof(detail));
  Throw(kind, "{} failed: {}{}{}", NameOfCall(call), cudnnGetErrorString(status), detail[0] ? ": " : "", detail);
}

}  // namespace mxtrain::cuda
