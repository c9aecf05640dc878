// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/gpu_library.h"

namespace mxtrain {

std::unique_ptr<Communicator> NewGpuCommunicator(std::span<const Context> devices) {
  const GpuLibrary library = OpenGpuLibrary();
  if (!library.handle) Throw(ErrorKind::kDevice, "GPUs cannot sum: {}", library.why_absent);
  auto* make = reinterpret_cast<Communicator* (*)(std::span<const Context>)>(
      dlsym(library.handle, "mxtrain_new_nccl_communicator"));
  if (!make)
    Throw(ErrorKind::kDevice,
          "{} was built without NCCL, which several GPUs need; use kvstore.type=local, or one GPU",
          library.path);
  return std::unique_ptr<Communicator>(make(devices));
}

}  // namespace mxtrain
