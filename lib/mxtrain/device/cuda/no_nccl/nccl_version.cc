// SPDX-License-Identifier: Apache-2.0
// A build without NCCL's header: no communicator for GPUs (device/gpu_communicator.cc reports it).
#include "mxtrain/device/cuda/internal/nccl_version.h"

namespace mxtrain::cuda {

std::string NcclVersion() {
  return "not in this build";
}

}  // namespace mxtrain::cuda
