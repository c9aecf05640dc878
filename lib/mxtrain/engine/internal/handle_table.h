// SPDX-License-Identifier: Apache-2.0
#pragma once
// Owns what handles point to. A handle that is never deleted is freed with the engine.
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

namespace mxtrain::engine {

// Thread-safe. Objects are destroyed outside the lock: what their functions own may call the
// engine.
template <typename T>
class HandleTable {
 public:
  T* Add(std::unique_ptr<T> object) {
    T* handle = object.get();
    const std::lock_guard lock(mutex_);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  void Delete(T* handle) {
    std::unique_lock lock(mutex_);
    const auto node = objects_.extract(handle);
    lock.unlock();
  }
  void DeleteAll() {
    std::unique_lock lock(mutex_);
    const auto objects = std::exchange(objects_, {});
    lock.unlock();
  }

 private:
  std::mutex mutex_;
  std::unordered_map<T*, std::unique_ptr<T>> objects_;  // guarded by mutex_
};

}  // namespace mxtrain::engine
