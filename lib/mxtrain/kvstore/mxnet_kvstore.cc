// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/kvstore/mxnet_kvstore.h"

#include <algorithm>
#include <utility>

#include "mxtrain/base/error.h"

namespace mxtrain::mxnet {
namespace {

// The arrays of each key, keys in the order in which they are named first.
template <typename Array>
std::vector<std::pair<int, std::vector<NDArray>>> Grouped(const char* call,
                                                          const std::vector<int>& keys,
                                                          const std::vector<Array>& values) {
  if (keys.size() != values.size()) {
    Throw(ErrorKind::kUsage, "KVStore {} of {} keys with {} arrays; give one array for each key",
          call, keys.size(), values.size());
  }
  std::vector<std::pair<int, std::vector<NDArray>>> groups;
  for (size_t i = 0; i < keys.size(); ++i) {
    const auto found = std::find_if(groups.begin(), groups.end(),
                                    [&](const auto& group) { return group.first == keys[i]; });
    auto& arrays = found != groups.end() ? found->second : groups.emplace_back(keys[i], 0).second;
    if constexpr (std::is_pointer_v<Array>) {
      arrays.push_back(*values[i]);
    } else {
      arrays.push_back(values[i]);
    }
  }
  return groups;
}

}  // namespace

void KVStore::Init(const std::vector<int>& keys, const std::vector<NDArray>& values) {
  for (const auto& [key, arrays] : Grouped("Init", keys, values))
    store_.Init(key, arrays, /*share=*/false);
}

void KVStore::Push(const std::vector<int>& keys, const std::vector<NDArray>& values, int priority) {
  for (const auto& [key, arrays] : Grouped("Push", keys, values))
    store_.Push(key, arrays, priority);
}

void KVStore::Pull(const std::vector<int>& keys, const std::vector<NDArray*>& values,
                   int priority) {
  for (const auto& [key, arrays] : Grouped("Pull", keys, values))
    store_.Pull(key, arrays, priority);
}

void KVStore::set_updater(const Updater& updater) {
  store_.SetUpdater([updater](std::span<const mxtrain::KVStore::KeyUpdate> keys) {
    for (const auto& [key, received, stored, priority] : keys) {
      NDArray local = stored;
      updater(key, received, &local);
    }
  });
}

}  // namespace mxtrain::mxnet
