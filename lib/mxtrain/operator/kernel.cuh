#pragma once
// kernel.h for device code: OnGpu{ctx} in the place of OnCpu{ctx}. Only .cu files include it.
//
// Give named functors to these templates: nvcc refuses a lambda of device code inside a generic lambda, such as those of SwitchFloating.
#include "mxtrain/device/cuda/launch.cuh"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

struct OnGpu {
  RunContext ctx;
};

// f(i) for every i in [0, n); MapOn of kernel.h stands on it.
template <typename F>
void Launch(const OnGpu& device, int64_t n, const F& f) {
  cuda::Loop(StreamOf(device.ctx), n, f);
}

}  // namespace mxtrain
