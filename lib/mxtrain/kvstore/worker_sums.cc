// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/worker_sums.h"

#include "mxtrain/base/error.h"

namespace mxtrain {

std::span<const NDArray> WorkerSums::Sum(int key, std::span<const NDArray> values, int priority) {
  if (values.empty()) Throw(ErrorKind::kBug, "a push to key {} without a value", key);
  if (values.size() == 1) return values;
  Merge& merge = merges_[key];
  const NDArray& first = values[0];
  if (merge.sum.empty())
    merge.sum = NDArray(runtime_, first.shape(), first.dtype(), first.ctx(), first.layout(),
                        format("sum of key {}", key));
  Gather(key, values, priority, &merge.parts);
  if (!merge.add || !merge.add->Takes(merge.parts)) {
    merge.add.emplace("ElementWiseSum", merge.parts, std::span(&merge.sum, 1), OpReqType::kWriteTo,
                      Kwargs{{"num_args", std::to_string(values.size())}},
                      std::span<const NDArray>());
  }
  merge.add->Push(priority);
  return {&merge.sum, 1};
}

// Arrays on other devices are copied into permanent buffers.
void WorkerSums::Gather(int key, std::span<const NDArray> values, int priority,
                        std::vector<NDArray>* parts) {
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

}  // namespace mxtrain
