// SPDX-License-Identifier: Apache-2.0
#pragma once
// Makes a device current for the calling thread during its lifetime.
#include "mxtrain/base/error.h"
#include "mxtrain/device/cuda/error.h"

namespace mxtrain::cuda {

// Whether this process has already a context on the device. Creates none.
bool HasContext(int device);

// A thread that has not chosen a device has device 0. Since CUDA 12 choosing a device creates a
// context on it, some hundred MB; so device 0 is restored only if something uses it. Otherwise the
// thread stays with the device of the scope.
class DeviceScope {
 public:
  explicit DeviceScope(int id) : id_(id) {
    MXTRAIN_CHECK_CUDA(cudaGetDevice(&before_));
    if (before_ != id_) MXTRAIN_CHECK_CUDA(cudaSetDevice(id_));
  }
  ~DeviceScope() {
    if (before_ != id_ && HasContext(before_)) cudaSetDevice(before_);
  }
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const int id_;
  int before_ = 0;
};

// For destructors: work() with the device current. Ignores errors: a failed device reports them to
// whoever waits for its work.
template <typename F>
void OnDevice(int device, const F& work) {
  try {
    const DeviceScope scope(device);
    work();
  } catch (const Error&) {
  }
}

}  // namespace mxtrain::cuda
