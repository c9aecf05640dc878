#pragma once
// A cuDNN handle for questions at planning time, when no stream is at hand: one per device, made at the first question and kept until the process
// ends. While a PlanningHandle lives, no other thread has one and the device is current.
#include <mutex>

#include "mxtrain/device/cuda/device_scope.h"

namespace mxtrain::cuda {

class PlanningHandle {
 public:
  explicit PlanningHandle(int device);
  cudnnHandle_t get() const { return handle_; }

 private:
  const std::lock_guard<std::mutex> lock_;
  const DeviceScope scope_;
  cudnnHandle_t handle_ = nullptr;
};

}  // namespace mxtrain::cuda
