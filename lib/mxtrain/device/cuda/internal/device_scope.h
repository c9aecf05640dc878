// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a device current for the calling thread during its lifetime.
#include "mxtrain/device/cuda/error.h"

namespace mxtrain::cuda {

class DeviceScope {
 public:
  explicit DeviceScope(int id) : id_(id) {
    MXTRAIN_CHECK_CUDA(cudaGetDevice(&before_));
    if (before_ != id_) MXTRAIN_CHECK_CUDA(cudaSetDevice(id_));
  }
  ~DeviceScope() {
    if (before_ != id_) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const int id_;
  int before_ = 0;
};

}  // namespace mxtrain::cuda
