// SPDX-License-Identifier: Apache-2.0
#pragma once
// A cuDNN handle for queries and measurements at planning time, when there is no stream, on its own
// stream: one per device, created on first use and kept until the process ends. While a
// PlanningHandle lives, no other thread has one and the device is current.
#include <string>

#include "mxtrain/base/mutex.h"
#include "mxtrain/device/cuda/internal/device_scope.h"

namespace mxtrain::cuda {

class PlanningHandle {
 public:
  explicit PlanningHandle(int device);
  cudnnHandle_t get() const { return kept_->handle; }
  cudaStream_t stream() const { return kept_->stream; }
  // What a choice on this device depends on: "NVIDIA H200 9.0, cuDNN 9.14.0".
  const std::string& machine() const { return kept_->machine; }

  struct Kept {
    cudnnHandle_t handle = nullptr;
    cudaStream_t stream = nullptr;
    std::string machine;
  };

 private:
  const MutexLock lock_;
  const DeviceScope scope_;
  const Kept* kept_;
};

}  // namespace mxtrain::cuda
