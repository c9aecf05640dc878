// SPDX-License-Identifier: Apache-2.0
// KVStore `local`: the first worker's device keeps the value and sums gradients, in worker order.
#include <algorithm>

#include "mxtrain/base/error.h"
#include "mxtrain/kvstore/internal/process_store.h"
#include "mxtrain/operator/imperative.h"

namespace mxtrain {
namespace {

class KVStoreLocal final : public ProcessStore {
 public:
  using ProcessStore::ProcessStore;

  void Init(int key, std::span<const NDArray> values, bool share) override {
    Keep(key, values.first(1), share);
  }

  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority) override {
    Values(key);  // throws for an unknown key
    if (values.empty()) Throw(ErrorKind::kBug, "a push to key {} without a value", key);
    if (values.size() == 1) return values;
    Merge& merge = merges_[key];
    const NDArray& first = values[0];
    if (merge.sum.empty())
      merge.sum = NDArray(runtime_, first.shape(), first.dtype(), first.ctx(), first.layout(),
                          format("sum of key {}", key));
    Gather(key, values, priority, &merge.parts);
    if (!merge.add || !merge.add->Takes(merge.parts)) {
      merge.add.emplace("ElementWiseSum", merge.parts, std::span(&merge.sum, 1),
                        OpReqType::kWriteTo, Kwargs{{"num_args", std::to_string(values.size())}},
                        std::span<const NDArray>());
    }
    merge.add->Push(priority);
    return {&merge.sum, 1};
  }

 private:
  struct Merge {
    std::vector<NDArray> parts;  // one per worker, on the first one's device
    NDArray sum;
    std::optional<PreparedCall> add;
  };

  // Arrays on other devices are copied into permanent buffers.
  void Gather(int key, std::span<const NDArray> values, int priority, std::vector<NDArray>* parts) {
    const NDArray& first = values[0];
    parts->resize(values.size());
    for (size_t i = 0; i < values.size(); ++i) {
      NDArray& part = (*parts)[i];
      if (values[i].ctx() == first.ctx()) {
        part = values[i];
        continue;
      }
      if (part.empty())
        part = NDArray(runtime_, first.shape(), first.dtype(), first.ctx(), first.layout(),
                       format("part of key {}", key));
      part.CopyFrom(values[i], priority);
    }
  }

  std::map<int, Merge> merges_;  // of keys with several workers
};

}  // namespace

std::unique_ptr<KVStore> NewKVStoreLocal(Runtime& runtime) {
  return std::make_unique<KVStoreLocal>(runtime);
}

}  // namespace mxtrain
