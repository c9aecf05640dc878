#include "tests/support/allocation_count.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0};

void* Allocate(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (size == 0) size = 1;
  void* data =
      alignment <= alignof(max_align_t) ? std::malloc(size) : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

void* AllocateOrNull(std::size_t size, std::size_t alignment) noexcept {
  try {
    return Allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// All forms: a sanitizer brings its own for those that are left out, and sees one allocator's memory freed by another.

void* operator new(std::size_t size) {
  return Allocate(size, 1);
}
void* operator new[](std::size_t size) {
  return Allocate(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Allocate(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, 1);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, 1);
}
void* operator new(std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return AllocateOrNull(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* data) noexcept {
  std::free(data);
}
void operator delete[](void* data) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::size_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept {
  std::free(data);
}
void operator delete(void* data, const std::nothrow_t&) noexcept {
  std::free(data);
}
void operator delete[](void* data, const std::nothrow_t&) noexcept {
  std::free(data);
}
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(data);
}
void operator delete[](void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  std::free(data);
}

namespace mxtrain::test {
int64_t AllocationsSoFar() {
  return allocations.load(std::memory_order_relaxed);
}
}  // namespace mxtrain::test
