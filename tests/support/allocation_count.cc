// SPDX-License-Identifier: Apache-2.0
#include "tests/support/allocation_count.h"

#include <malloc.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

std::atomic<int64_t> allocations{0}, bytes{0}, most_bytes{0};
thread_local int64_t until_failure = -1;  // allocations; -1: none fails

void NoteMost(int64_t now) {
  int64_t most = most_bytes.load(std::memory_order_relaxed);
  while (now > most && !most_bytes.compare_exchange_weak(most, now, std::memory_order_relaxed)) {
  }
}

void* Allocate(std::size_t size, std::size_t alignment) {
  allocations.fetch_add(1, std::memory_order_relaxed);
  if (until_failure >= 0 && until_failure-- == 0) throw std::bad_alloc();
  if (size == 0) size = 1;
  void* data = alignment <= alignof(max_align_t)
                   ? std::malloc(size)
                   : std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
  if (data == nullptr) throw std::bad_alloc();
  const int64_t taken = static_cast<int64_t>(malloc_usable_size(data));
  NoteMost(bytes.fetch_add(taken, std::memory_order_relaxed) + taken);
  return data;
}

void Free(void* data) {
  if (data)
    bytes.fetch_sub(static_cast<int64_t>(malloc_usable_size(data)), std::memory_order_relaxed);
  std::free(data);
}

void* AllocateOrNull(std::size_t size, std::size_t alignment) noexcept {
  try {
    return Allocate(size, alignment);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// Replaces all overloads: otherwise a sanitizer provides the missing ones, and memory of one
// allocator is freed by another.

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
  Free(data);
}
void operator delete[](void* data) noexcept {
  Free(data);
}
void operator delete(void* data, std::size_t) noexcept {
  Free(data);
}
void operator delete[](void* data, std::size_t) noexcept {
  Free(data);
}
void operator delete(void* data, std::align_val_t) noexcept {
  Free(data);
}
void operator delete[](void* data, std::align_val_t) noexcept {
  Free(data);
}
void operator delete(void* data, std::size_t, std::align_val_t) noexcept {
  Free(data);
}
void operator delete[](void* data, std::size_t, std::align_val_t) noexcept {
  Free(data);
}
void operator delete(void* data, const std::nothrow_t&) noexcept {
  Free(data);
}
void operator delete[](void* data, const std::nothrow_t&) noexcept {
  Free(data);
}
void operator delete(void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  Free(data);
}
void operator delete[](void* data, std::align_val_t, const std::nothrow_t&) noexcept {
  Free(data);
}

namespace mxtrain::test {
int64_t AllocationsSoFar() {
  return allocations.load(std::memory_order_relaxed);
}

PeakBytes::PeakBytes() : start_(bytes.load(std::memory_order_relaxed)) {
  most_bytes = start_;
}

FailingAllocation::FailingAllocation(int64_t count) {
  until_failure = count;
}
FailingAllocation::~FailingAllocation() {
  until_failure = -1;
}

int64_t PeakBytes::value() const {
  return most_bytes.load(std::memory_order_relaxed) - start_;
}
}  // namespace mxtrain::test
