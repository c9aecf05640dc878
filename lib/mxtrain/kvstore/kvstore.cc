// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/kvstore.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/kvstore/internal/process_store.h"

namespace mxtrain {

std::unique_ptr<KVStore> KVStore::Create(Runtime& runtime, std::string_view type,
                                         std::span<const Context> workers,
                                         const CommunicatorFactory& new_communicator) {
  runtime.log("kvstore").Debug("{}, {} worker{}", type, std::max<size_t>(workers.size(), 1),
                               workers.size() > 1 ? "s" : "");
  if (type == "local") return NewKVStoreLocal(runtime);
  if (type == "device") return NewKVStoreDevice(runtime, workers, new_communicator);
  if (type == "dist_sync" || type == "dist_device_sync" || type == "dist_async") {
    Throw(ErrorKind::kConfig,
          "KVStore '{}' needs several processes, which this build does not support; use local or "
          "device",
          type);
  }
  const std::vector<std::string> names = {"local", "device", "dist_sync", "dist_device_sync",
                                          "dist_async"};
  Throw(ErrorKind::kConfig, "there is no KVStore '{}'{}; use local or device", type,
        DidYouMean(type, names));
}

}  // namespace mxtrain
