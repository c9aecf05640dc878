// SPDX-License-Identifier: Apache-2.0
#pragma once
// Sums of the gradients of the workers of one process, on the first worker's device, in worker
// order.
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "mxtrain/operator/imperative.h"

namespace mxtrain {

class WorkerSums {
 public:
  explicit WorkerSums(Runtime& runtime) : runtime_(runtime) {}

  // `values`: one per worker, at least one; a single one is its own sum. Valid until the key's next
  // sum, and as long as `values`.
  std::span<const NDArray> Sum(int key, std::span<const NDArray> values, int priority);

 private:
  struct Merge {
    std::vector<NDArray> parts;  // one per worker, on the first one's device
    NDArray sum;
    std::optional<PreparedCall> add;
  };
  void Gather(int key, std::span<const NDArray> values, int priority, std::vector<NDArray>* parts);

  Runtime& runtime_;
  std::map<int, Merge> merges_;  // of keys with several workers
};

}  // namespace mxtrain
