// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cuda/internal/planning_handle.h"

#include <map>

#include "mxtrain/base/format.h"
#include "mxtrain/device/cuda/internal/cudnn_version.h"

namespace mxtrain::cuda {
namespace {

Mutex mutex;
std::map<int, PlanningHandle::Kept> handles MXTRAIN_GUARDED_BY(mutex);  // by device

// Of the current device.
PlanningHandle::Kept MakeHandle(int device) {
  PlanningHandle::Kept kept;
  cudaDeviceProp properties;
  MXTRAIN_CHECK_CUDA(cudaGetDeviceProperties(&properties, device));
  kept.machine = format("{} {}.{}, cuDNN {}", properties.name, properties.major, properties.minor,
                        CudnnVersion());
  MXTRAIN_CHECK_CUDA(cudaStreamCreateWithFlags(&kept.stream, cudaStreamNonBlocking));
  MXTRAIN_CHECK_CUDA(cudnnCreate(&kept.handle));
  MXTRAIN_CHECK_CUDA(cudnnSetStream(kept.handle, kept.stream));
  return kept;
}

}  // namespace

PlanningHandle::PlanningHandle(int device) : lock_(mutex), scope_(device) {
  auto found = handles.find(device);
  if (found == handles.end()) found = handles.emplace(device, MakeHandle(device)).first;
  kept_ = &found->second;
}

}  // namespace mxtrain::cuda
