// SPDX-License-Identifier: Apache-2.0
// KVStore `local`: the first worker's device keeps the value and sums gradients, in worker order.
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/kvstore/internal/worker_sums.h"

namespace mxtrain {
namespace {

class KVStoreLocal final : public ProcessStore {
 public:
  explicit KVStoreLocal(Runtime& runtime) : ProcessStore(runtime), sums_(runtime) {}

  void Init(int key, std::span<const NDArray> values, bool share) override {
    Keep(key, values.first(1), share);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    return sums_.Sum(key, values, priority);
  }

 private:
  WorkerSums sums_;
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreLocal(Runtime& runtime) {
  return std::make_unique<KVStoreLocal>(runtime);
}

}  // namespace mxtrain
