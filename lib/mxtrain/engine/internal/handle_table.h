// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owns what handles point to. A handle that is never deleted is freed with the engine.
#include <memory>
#include <unordered_map>
#include <utility>

#include "mxtrain/base/mutex.h"

namespace mxtrain::engine {

// Thread-safe. Objects are destroyed outside the lock: what their functions own may call the
// engine.
template <typename T>
class HandleTable {
 public:
  T* Add(std::unique_ptr<T> object) {
    T* handle = object.get();
    const MutexLock lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  void Delete(T* handle) {
    MutexLock lock(mutex_);
    const auto node = objects_.extract(handle);
    lock.Unlock();
  }
  void DeleteAll() {
    MutexLock lock(mutex_);
    const auto objects = std::exchange(objects_, {});
    lock.Unlock();
  }

 private:
  Mutex mutex_;
  std::unordered_map<T*, std::unique_ptr<T>> objects_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace mxtrain::engine
