// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/device_scope.h"

#include <cuda.h>
#include <dlfcn.h>

namespace mxtrain::cuda {

// The runtime has no such query. It has already loaded the driver, which stays loaded.
bool HasContext(int device) {
  static const auto get_state = [] {
    void* const driver = dlopen("libcuda.so.1", RTLD_LAZY);
    return reinterpret_cast<decltype(&cuDevicePrimaryCtxGetState)>(
        driver ? dlsym(driver, "cuDevicePrimaryCtxGetState") : nullptr);
  }();
  unsigned flags = 0;
  int active = 0;
  return get_state && get_state(device, &flags, &active) == CUDA_SUCCESS && active != 0;
}

}  // namespace mxtrain::cuda
