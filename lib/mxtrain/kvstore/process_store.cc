#include "mxtrain/kvstore/process_store.h"

#include <algorithm>

#include "mxtrain/base/error.h"

namespace mxtrain {

void ProcessStore::Keep(int key, std::span<const NDArray> values, bool share) {
  const auto [kept, fresh] = values_.try_emplace(key);
  if (!fresh) Throw(ErrorKind::kBug, "key {} of the store was initialised twice", key);
  for (const NDArray& value : values) kept->second.push_back(share ? value : value.Copy(value.ctx()));
}

std::span<const NDArray> ProcessStore::Values(int key) const {
  const auto found = values_.find(key);
  if (found == values_.end()) Throw(ErrorKind::kBug, "key {} of the store was never initialised", key);
  return found->second;
}

void ProcessStore::Update(int key, std::span<const NDArray> sums, int priority) {
  const std::span<const NDArray> values = Values(key);
  if (sums.size() != values.size()) Throw(ErrorKind::kBug, "{} sums for the {} arrays of key {}", sums.size(), values.size(), key);
  for (size_t i = 0; i < values.size(); ++i) {
    if (updater_) {
      updater_(key, sums[i], values[i], priority);
    } else {
      NDArray(values[i]).CopyFrom(sums[i], priority);
    }
  }
}

void ProcessStore::Pull(int key, std::span<const NDArray> out, int priority) {
  const std::span<const NDArray> values = Values(key);
  for (NDArray target : out) {
    const auto same_device = std::find_if(values.begin(), values.end(), [&](const NDArray& value) { return value.ctx() == target.ctx(); });
    target.CopyFrom(same_device == values.end() ? values[0] : *same_device, priority);  // nothing where the target is the value itself
  }
}

}  // namespace mxtrain
