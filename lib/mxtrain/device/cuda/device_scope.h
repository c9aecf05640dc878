#pragma once
// Makes a device current for the calling thread while it lives.
#include "mxtrain/device/cuda/error.h"

namespace mxtrain::cuda {

class DeviceScope {
 public:
  explicit DeviceScope(int id) {
    MXTRAIN_CHECK_CUDA(cudaGetDevice(&before_));
    MXTRAIN_CHECK_CUDA(cudaSetDevice(id));
  }
  ~DeviceScope() { cudaSetDevice(before_); }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  int before_ = 0;
};

}  // namespace mxtrain::cuda
