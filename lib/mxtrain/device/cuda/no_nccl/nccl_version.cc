// A build without NCCL's header: there is no communicator of GPUs (device/gpu_communicator.cc says so).
#include "mxtrain/device/cuda/nccl_version.h"

namespace mxtrain::cuda {

std::string NcclVersion() {
  return "not in this build";
}

}  // namespace mxtrain::cuda
