// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owners of cuDNN descriptors.
#include <utility>

#include "mxtrain/base/dtype.h"
#include "mxtrain/device/cuda/error.h"

namespace mxtrain::cuda {

template <typename Handle, cudnnStatus_t (*kCreate)(Handle*), cudnnStatus_t (*kDestroy)(Handle)>
class CudnnOwner {
 public:
  CudnnOwner() { Check(kCreate(&handle_), "a cuDNN descriptor"); }
  ~CudnnOwner() {
    if (handle_) kDestroy(handle_);
  }
  CudnnOwner(CudnnOwner&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  CudnnOwner& operator=(CudnnOwner&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  Handle get() const { return handle_; }

 private:
  Handle handle_ = nullptr;
};

using TensorDescriptor =
    CudnnOwner<cudnnTensorDescriptor_t, cudnnCreateTensorDescriptor, cudnnDestroyTensorDescriptor>;
using FilterDescriptor =
    CudnnOwner<cudnnFilterDescriptor_t, cudnnCreateFilterDescriptor, cudnnDestroyFilterDescriptor>;
using ConvolutionDescriptor =
    CudnnOwner<cudnnConvolutionDescriptor_t, cudnnCreateConvolutionDescriptor,
               cudnnDestroyConvolutionDescriptor>;

// For floating types; throws kBug for others.
cudnnDataType_t CudnnType(DType type);

}  // namespace mxtrain::cuda
