#include "mxtrain/device/cuda/planning_handle.h"

#include <map>

namespace mxtrain::cuda {
namespace {

std::mutex mutex;
std::map<int, cudnnHandle_t> handles;  // guarded by mutex; by device

}  // namespace

PlanningHandle::PlanningHandle(int device) : lock_(mutex), scope_(device) {
  const auto found = handles.find(device);
  if (found != handles.end()) {
    handle_ = found->second;
    return;
  }
  MXTRAIN_CHECK_CUDA(cudnnCreate(&handle_));
  handles[device] = handle_;
}

}  // namespace mxtrain::cuda
