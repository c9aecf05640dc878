#pragma once
// Pooled memory of all devices. Blocks are 64-byte aligned on the CPU, freed blocks are kept by size and given out again. Thread-safe.
//
// The cache of freed blocks is bounded: blocks in use and in the cache together hold at most twice what was ever in use at once on that
// device (kCacheFloor more than it, where that is more); what was freed longest ago goes back to the device first. So a program that
// alternates between two sets of sizes asks the device for each once, and one whose sizes drift does not grow.
//
// A block whose last owner is gone may stay in use until a device is done with it. Who asks for memory then waits for such blocks where there
// is none, and before they hold more than kMostRetired.
#include <functional>
#include <memory>

#include "mxtrain/device/backend.h"

namespace mxtrain {

class MXTRAIN_API Storage {
 public:
  struct Handle {
    void* ptr = nullptr;
    int64_t bytes = 0;  // as asked for
    Context ctx;
  };
  struct Stats {
    int64_t in_use = 0, cached = 0, peak = 0;  // bytes as taken from the device (sizes are rounded up by less than 1/8); peak of in_use
    int64_t retired = 0;                       // of in_use: what Retire was told of
    int64_t allocations = 0;                   // calls of the device's own allocator so far
    int64_t evictions = 0;                     // blocks that went back to the device because the cache was full
  };
  static constexpr int64_t kCacheFloor = int64_t{64} << 20;
  static constexpr int64_t kMostRetired = int64_t{64} << 20;

  // `backend` finds the backend of a context and must outlive the storage's users. `await_free` waits for a Free that is on its way, and says
  // whether there was one; it is called from Alloc, on any thread. Empty: there never is one.
  static std::unique_ptr<Storage> Create(std::function<Backend&(Context)> backend, std::function<bool()> await_free = {});
  virtual ~Storage() = default;  // returns everything to the devices

  // `who` names the holder in out-of-memory errors ("conv1_weight", "arena"). A zero-sized block has a null pointer. When the device is
  // full the cache is released and the device asked once more, and after each Free that is on its way again; then kMemory, with the size, what
  // is in use and the largest holders.
  virtual Handle Alloc(Context ctx, int64_t bytes, const char* who) = 0;
  virtual void Free(Handle handle) = 0;  // at once; deferring to the engine is the owner's business
  virtual void Retire(Handle handle) = 0;  // its Free is on its way; once
  virtual void ReleaseCache(Context ctx) = 0;
  virtual Stats GetStats(Context ctx) const = 0;
};

}  // namespace mxtrain
