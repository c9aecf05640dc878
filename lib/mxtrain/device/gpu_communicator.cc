// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/device/gpu_library.h"
#include "mxtrain/device/rank_gpus.h"

namespace mxtrain {

std::unique_ptr<Communicator> NewGpuCommunicator(std::span<const Context> devices,
                                                 std::shared_ptr<ProcessGroup> group) {
  using Make = Communicator*(std::span<const Context>, std::shared_ptr<ProcessGroup>);
  const GpuLibrary library = OpenGpuLibrary();
  auto* make = library.handle
                   ? reinterpret_cast<Make*>(dlsym(library.handle, "mxtrain_new_nccl_communicator"))
                   : nullptr;
  if (make) return std::unique_ptr<Communicator>(make(devices, std::move(group)));
  const std::string reason =
      library.handle ? format("{} was built without NCCL, which several GPUs need", library.path)
                     : format("GPUs cannot sum: {}", library.why_absent);
  if (group) OrderGpus(*group, {}, reason);  // throws, also on the other ranks
  Throw(ErrorKind::kDevice, "{}{}", reason,
        library.handle ? "; use kvstore.type=local, or one GPU" : "");
}

}  // namespace mxtrain
