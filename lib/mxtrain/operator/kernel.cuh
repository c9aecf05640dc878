// SPDX-License-Identifier: Apache-2.0
#pragma once
// kernel.h for device code: OnGpu{ctx} in place of OnCpu{ctx}. Only .cu files include it.
//
// Pass named functors to these templates: nvcc rejects a device lambda inside a generic lambda,
// such as those of SwitchFloating.
#include "mxtrain/device/cuda/launch.cuh"
#include "mxtrain/operator/kernel.h"

namespace mxtrain {

struct OnGpu {
  static constexpr DeviceType kType = DeviceType::kGPU;
  static constexpr const char* kKernelName = "cuda";
  RunContext ctx;
};

// f(i) for every i in [0, n).
template <typename F>
void Launch(const OnGpu& device, int64_t n, const F& f) {
  cuda::Loop(StreamOf(device.ctx), n, f);
}

namespace detail {

template <typename T, typename F>
struct MapBodyOfGpu {
  T* data;
  OpReqType req;
  F f;
  MXTRAIN_HD void operator()(int64_t i) const { Assign(req, data, i, f(i)); }
};

}  // namespace detail

// MapOn of kernel.h, with one kernel for assignment and accumulation.
template <typename T, typename F>
void MapOn(const OnGpu& device, const TBlob& out, OpReqType req, F f) {
  if (req != OpReqType::kNullOp)
    Launch(device, out.StoredSize(), detail::MapBodyOfGpu<T, F>{out.dptr<T>(), req, f});
}

}  // namespace mxtrain
