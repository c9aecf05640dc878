// SPDX-License-Identifier: Apache-2.0
#pragma once
// Reusable objects. A returned object is emptied by its Clear() but keeps the memory of its
// vectors, so steady-state work allocates nothing. Any thread may take and return; objects may
// outlive the recycler.
#include <memory>
#include <utility>
#include <vector>

#include "mxtrain/base/mutex.h"

namespace mxtrain {

template <typename T>
class Recycler {
  struct Shelf {
    Mutex mutex;
    std::vector<std::unique_ptr<T>> idle MXTRAIN_GUARDED_BY(mutex);
  };

 public:
  // Owns an object and returns it on destruction.
  class Lease {
   public:
    Lease(Lease&&) noexcept = default;
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (!object_) return;
      object_->Clear();
      MutexLock lock(shelf_->mutex);
      shelf_->idle.push_back(std::move(object_));
    }
    T& operator*() const { return *object_; }
    T* operator->() const { return object_.get(); }

   private:
    friend Recycler;
    Lease(std::shared_ptr<Shelf> shelf, std::unique_ptr<T> object)
        : shelf_(std::move(shelf)), object_(std::move(object)) {}

    std::shared_ptr<Shelf> shelf_;
    std::unique_ptr<T> object_;
  };

  Lease Take() {
    {
      MutexLock lock(shelf_->mutex);
      if (!shelf_->idle.empty()) {
        std::unique_ptr<T> object = std::move(shelf_->idle.back());
        shelf_->idle.pop_back();
        return {shelf_, std::move(object)};
      }
    }
    return {shelf_, std::make_unique<T>()};
  }

 private:
  const std::shared_ptr<Shelf> shelf_ = std::make_shared<Shelf>();
};

}  // namespace mxtrain
