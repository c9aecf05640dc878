// SPDX-License-Identifier: Apache-2.0
#pragma once
// Pooled memory of all devices. Blocks are 64-byte aligned on the CPU; freed blocks are cached by
// size and reused. Thread-safe.
//
// The cache is bounded: blocks in use and cached together hold at most twice the peak use of that
// device, or the peak plus kCacheFloor if that is more; the least recently freed block goes back to
// the device first. So a program that alternates between two sets of sizes allocates each once, and
// one whose sizes drift does not grow.
//
// A block whose last owner is gone may stay in use until a device is done with it. Alloc waits for
// such blocks if memory is exhausted, and before they hold more than kMostRetired. Blocks whose
// owner keeps them for later go back if memory is exhausted all the same.
#include <functional>
#include <memory>

#include "mxtrain/device/backend.h"

namespace mxtrain {

class MXTRAIN_API Storage {
 public:
  struct Handle {
    void* ptr = nullptr;
    int64_t bytes = 0;  // as requested
    Context ctx;
  };
  struct Stats {
    // Bytes taken from the device (rounded up by less than 1/8); `peak`: of in_use.
    int64_t in_use = 0, cached = 0, peak = 0;
    int64_t retired = 0;      // of in_use: passed to Retire
    int64_t allocations = 0;  // calls to the device's allocator so far
    int64_t evictions = 0;    // blocks returned to the device because the cache was full
  };
  static constexpr int64_t kCacheFloor = int64_t{64} << 20;
  static constexpr int64_t kMostRetired = int64_t{64} << 20;

  // `backend` returns the backend of a context and must outlive the storage's users. The others are
  // called from Alloc, on any thread, and may call Free. `await_free` waits for one pending Free
  // and returns whether there was one; empty: there is never one. `release_idle`, called only when
  // memory of a device is exhausted and no Free is pending, frees the blocks there that owners keep
  // for later; empty: there are none.
  static std::unique_ptr<Storage> Create(std::function<Backend&(Context)> backend,
                                         std::function<bool()> await_free = {},
                                         std::function<void(Context)> release_idle = {});
  virtual ~Storage() = default;  // returns everything to the devices

  // `who` names the holder in out-of-memory errors ("conv1_weight", "arena"). A zero-sized block
  // has a null pointer. If the device is full, releases the cache and retries, again after each
  // pending Free, and once idle blocks are released; then throws kMemory with the size, the bytes
  // in use and the largest holders.
  virtual Handle Alloc(Context ctx, int64_t bytes, const char* who) = 0;
  virtual void Free(Handle handle) = 0;    // immediate; deferring to the engine is up to the owner
  virtual void Retire(Handle handle) = 0;  // announces a pending Free; once per block
  virtual void ReleaseCache(Context ctx) = 0;
  virtual Stats GetStats(Context ctx) const = 0;
};

}  // namespace mxtrain
