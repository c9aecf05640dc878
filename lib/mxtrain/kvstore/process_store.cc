// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/internal/process_store.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain {

void ProcessStore::Keep(int key, std::span<const NDArray> values, bool share) {
  const auto [kept, fresh] = values_.try_emplace(key);
  if (!fresh) Throw(ErrorKind::kBug, "key {} of the store was initialised twice", key);
  for (const NDArray& value : values)
    kept->second.push_back(share ? value : value.Copy(value.ctx()));
}

std::span<const NDArray> ProcessStore::Values(int key) const {
  const auto found = values_.find(key);
  if (found == values_.end())
    Throw(ErrorKind::kBug, "key {} of the store was never initialised", key);
  return found->second;
}

void ProcessStore::Push(int key, std::span<const NDArray> values, int priority) {
  Values(key);  // throws for an unknown key
  Complete(key);
  if (SumsInPlace(key, values.size())) {
    std::vector<NDArray>& copies = pushed_[key];
    copies.resize(values.size());
    for (size_t w = 0; w < values.size(); ++w) {
      NDArray& copy = copies[w];
      if (copy.empty() || !(copy.spec() == values[w].spec()) || !(copy.ctx() == values[w].ctx()))
        copy = values[w].Copy(values[w].ctx());
      else
        copy.CopyFrom(values[w], priority);
    }
    values = copies;
  }
  const KeySums one{key, Sum(key, values, priority), priority};
  Update({&one, 1});
}

void ProcessStore::Update(std::span<const KeySums> keys) {
  if (keys.empty()) return;
  const size_t devices = Values(keys[0].key).size();
  for (const auto& [key, sums, priority] : keys) {
    if (sums.size() != devices || Values(key).size() != devices) {
      Throw(ErrorKind::kBug, "{} sums for the {} arrays of key {}", sums.size(), Values(key).size(),
            key);
    }
  }
  for (size_t d = 0; d < devices; ++d) {
    updates_.clear();
    for (const auto& [key, sums, priority] : keys)
      updates_.push_back({key, sums[d], Values(key)[d], priority});
    if (updater_) {
      updater_(updates_);
    } else {
      for (const KeyUpdate& update : updates_)
        NDArray(update.local).CopyFrom(update.received, update.priority);
    }
  }
}

void ProcessStore::Pull(int key, std::span<const NDArray> out, int priority) {
  Complete(key);
  const std::span<const NDArray> values = Values(key);
  for (NDArray target : out) {
    const auto same_device = std::find_if(values.begin(), values.end(), [&](const NDArray& value) {
      return value.ctx() == target.ctx();
    });
    // No-op if the target is the value itself.
    target.CopyFrom(same_device == values.end() ? values[0] : *same_device, priority);
  }
}

}  // namespace mxtrain
