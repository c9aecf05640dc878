// SPDX-License-Identifier: Apache-2.0
#pragma once
// Objects waiting for reuse. Any thread may Put; only one at a time may Get (under the owner's
// lock). Get takes the whole list of returned objects at once, which avoids the ABA problem.
#include <atomic>
#include <memory>
#include <vector>

namespace mxtrain::engine {

// T has a member `T* next_free`.
template <typename T>
class FreeList {
 public:
  void Put(T* object) {
    T* head = returned_.load(std::memory_order_relaxed);
    do {
      object->next_free = head;
    } while (!returned_.compare_exchange_weak(head, object, std::memory_order_release,
                                              std::memory_order_relaxed));
  }
  // Null when there is none.
  T* Get() {
    if (!ready_ && returned_.load(std::memory_order_relaxed))
      ready_ = returned_.exchange(nullptr, std::memory_order_acquire);
    T* object = ready_;
    if (object) ready_ = object->next_free;
    return object;
  }

 private:
  T* ready_ = nullptr;  // guarded by the owner's lock
  alignas(64) std::atomic<T*> returned_{nullptr};
};

// A free list that allocates objects in slabs when empty and owns them all. Memory is freed with
// the pool.
template <typename T>
class ObjectPool {
 public:
  T* Get() {
    if (T* object = free_.Get()) return object;
    if (used_of_slab_ == kSlab) {
      slabs_.push_back(std::make_unique<T[]>(kSlab));
      used_of_slab_ = 0;
    }
    return &slabs_.back()[used_of_slab_++];
  }
  void Put(T* object) { free_.Put(object); }

 private:
  static constexpr int kSlab = 64;
  FreeList<T> free_;
  std::vector<std::unique_ptr<T[]>> slabs_;  // guarded by the owner's lock
  int used_of_slab_ = kSlab;
};

}  // namespace mxtrain::engine
