// SPDX-License-Identifier: Apache-2.0
#include "app/commands/kvstore_flag.h"

namespace mxtrain::commands {

void KVStoreFlag::Declare(Arguments& arguments) {
  arguments
      .Option("--kvstore", &type_,
              "how workers sum their gradients; short for train.kvstore.type=TYPE; dist_sync, "
              "dist_async, and on GPUs "
              "dist_device_sync: the processes of mpirun or srun train together")
      .Takes("TYPE");
}

void KVStoreFlag::AddTo(ConfigArguments* config) const {
  if (!type_.empty()) config->overrides.push_back("train.kvstore.type=" + type_);
}

}  // namespace mxtrain::commands
