// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/kvstore.h"

#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/base/suggest.h"
#include "mxtrain/base/text.h"
#include "mxtrain/kvstore/internal/process_store.h"

namespace mxtrain {
namespace {

// Of a store within one process.
void CheckOptions(std::string_view type, std::span<const Context> workers,
                  const DistOptions& options) {
  using Wire = DistOptions::Wire;
  if (options.shard_states || options.wire == Wire::kTwoBit)
    Throw(ErrorKind::kConfig,
          "KVStore '{}': gradients are compressed, and states sharded, between processes only: use "
          "dist_sync",
          type);
  if (options.wire == Wire::kBfloat16 && (type == "local" || workers.size() < 2))
    Throw(ErrorKind::kConfig,
          "kvstore.wire=bfloat16 is for gradients that travel between several GPUs or processes, "
          "and there is {} with KVStore '{}'; remove it, or use device with several GPUs, or "
          "dist_sync",
          Counted(std::max<int64_t>(std::ssize(workers), 1), "worker"), type);
}

}  // namespace

std::unique_ptr<KVStore> KVStore::Create(Runtime& runtime, std::string_view type,
                                         std::span<const Context> workers,
                                         const CommunicatorFactory& new_communicator,
                                         std::shared_ptr<ProcessGroup> group,
                                         const DistOptions& dist) {
  runtime.log("kvstore").Debug("{}, {} worker{}", type, std::max<size_t>(workers.size(), 1),
                               workers.size() > 1 ? "s" : "");
  if (type == "local" || type == "device") CheckOptions(type, workers, dist);
  if (type == "local") return NewKVStoreLocal(runtime);
  if (type == "device") return NewKVStoreDevice(runtime, workers, new_communicator, dist.wire);
  if (type == "dist_sync" || type == "dist_async") {
    if (!group) Throw(ErrorKind::kBug, "KVStore '{}' without a group of processes", type);
    const bool on_gpu = std::any_of(workers.begin(), workers.end(),
                                    [](Context worker) { return worker.type == DeviceType::kGPU; });
    if (on_gpu)
      Throw(ErrorKind::kConfig,
            "KVStore '{}' computes in host memory: use dist_device_sync for GPUs, or --device cpu",
            type);
    if (type == "dist_async") return NewKVStoreDistAsync(runtime, std::move(group), dist);
    return NewKVStoreDist(runtime, std::move(group), dist);
  }
  if (type == "dist_device_sync") {
    if (!group) Throw(ErrorKind::kBug, "KVStore 'dist_device_sync' without a group of processes");
    if (dist.shard_states || dist.wire == DistOptions::Wire::kTwoBit)
      Throw(ErrorKind::kConfig,
            "KVStore 'dist_device_sync' has no {}: GPUs sum what they have, and each updates all "
            "weights; remove it, or use dist_sync",
            dist.shard_states ? "sharded states" : "2-bit compression");
    return NewKVStoreDevice(runtime, workers, new_communicator, dist.wire, std::move(group));
  }
  const std::vector<std::string> names = {"local", "device", "dist_sync", "dist_device_sync",
                                          "dist_async"};
  Throw(ErrorKind::kConfig,
        "there is no KVStore '{}'{}; use local, device, dist_sync, dist_device_sync or dist_async",
        type, DidYouMean(type, names));
}

}  // namespace mxtrain
