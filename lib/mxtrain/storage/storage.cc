// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/storage/storage.h"

#include <algorithm>
#include <bit>
#include <deque>
#include <map>
#include <unordered_map>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/base/math.h"
#include "mxtrain/base/mutex.h"

namespace mxtrain {
namespace {

constexpr size_t kHoldersNamed = 5;
// Beyond every device; smaller sizes can be rounded up without overflow.
constexpr int64_t kLargest = int64_t{1} << 60;

// Size classes. Small sizes are multiples of a cache line, medium ones have eight classes per power
// of two (at most 1/8 is wasted), large ones are multiples of a huge page.
int64_t SizeClass(int64_t bytes) {
  auto round = [bytes](int64_t step) { return RoundUp(bytes, step); };
  if (bytes <= 4096) return round(64);
  if (bytes >= int64_t{64} << 20) return round(int64_t{2} << 20);
  return round(static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(bytes))) / 8);
}

class PooledStorage final : public Storage {
 public:
  PooledStorage(std::function<Backend&(Context)> backend, std::function<bool()> await_free,
                std::function<void(Context)> release_idle)
      : backend_(std::move(backend)),
        await_free_(std::move(await_free)),
        release_idle_(std::move(release_idle)) {}

  ~PooledStorage() override {
    for (auto& [ctx, pool] : pools_) {
      Drain(ctx, &pool);
      for (auto& [data, block] : pool.live) backend_(ctx).Free(ctx, data);
    }
  }

  Handle Alloc(Context ctx, int64_t bytes, const char* who) override {
    if (bytes < 0) Throw(ErrorKind::kBug, "'{}' requested {} bytes", who, bytes);
    if (bytes == 0) return {nullptr, 0, ctx};
    MutexLock lock(mutex_);
    Pool& pool = pools_[ctx];
    if (bytes > kLargest) ThrowFull(ctx, pool, bytes, who);
    while (pool.stats.retired > kMostRetired && AwaitFree(&lock)) {
    }
    const int64_t size = SizeClass(bytes);
    void* data = Take(ctx, &pool, size);
    for (bool freed = true; !data && freed;) {
      freed = AwaitFree(&lock);
      // Retry even without a pending Free: the last may have happened before.
      data = Take(ctx, &pool, size);
    }
    if (!data && release_idle_) {
      ReleaseIdle(&lock, ctx);
      data = Take(ctx, &pool, size);
    }
    if (!data) ThrowFull(ctx, pool, bytes, who);
    pool.live.emplace(data, Block{size, who, false});
    pool.stats.in_use += size;
    pool.stats.peak = std::max(pool.stats.peak, pool.stats.in_use);
    return {data, bytes, ctx};
  }

  void Free(Handle handle) override {
    if (!handle.ptr) return;
    const MutexLock lock(mutex_);
    Pool& pool = pools_[handle.ctx];
    const auto found = pool.live.find(handle.ptr);
    if (found == pool.live.end())
      Throw(ErrorKind::kBug, "a block on {} was freed twice, or never allocated",
            handle.ctx.ToString());
    const int64_t size = found->second.bytes;
    if (found->second.retired) pool.stats.retired -= size;
    pool.live.erase(found);
    pool.cache[size].push_back({handle.ptr, ++pool.frees});
    pool.stats.in_use -= size;
    pool.stats.cached += size;
    const int64_t limit = pool.stats.peak + std::max(kCacheFloor, pool.stats.peak);
    while (pool.stats.in_use + pool.stats.cached > limit) Evict(handle.ctx, &pool);
  }

  void Retire(Handle handle) override {
    if (!handle.ptr) return;
    const MutexLock lock(mutex_);
    Pool& pool = pools_[handle.ctx];
    Block& block = pool.live.at(handle.ptr);
    block.retired = true;
    pool.stats.retired += block.bytes;
  }

  void ReleaseCache(Context ctx) override {
    const MutexLock lock(mutex_);
    if (const auto found = pools_.find(ctx); found != pools_.end()) Drain(ctx, &found->second);
  }

  Stats GetStats(Context ctx) const override {
    const MutexLock lock(mutex_);
    const auto found = pools_.find(ctx);
    return found == pools_.end() ? Stats{} : found->second.stats;
  }

 private:
  struct Block {
    int64_t bytes;  // of its size class
    std::string who;
    bool retired = false;
  };
  struct Freed {
    void* data;
    uint64_t serial;  // of its Free
  };
  struct Pool {
    std::unordered_map<void*, Block> live;
    std::map<int64_t, std::deque<Freed>> cache;  // by size class, oldest first; none is empty
    uint64_t frees = 0;
    Stats stats;
  };

  // Without the lock, which Free takes. Clang cannot follow a lock that is released through a
  // pointer.
  bool AwaitFree(MutexLock* lock) MXTRAIN_REQUIRES(mutex_) MXTRAIN_NO_THREAD_SAFETY_ANALYSIS {
    if (!await_free_) return false;
    lock->Unlock();
    const bool freed = await_free_();
    lock->Lock();
    return freed;
  }

  // Likewise.
  void ReleaseIdle(MutexLock* lock, Context ctx)
      MXTRAIN_REQUIRES(mutex_) MXTRAIN_NO_THREAD_SAFETY_ANALYSIS {
    lock->Unlock();
    release_idle_(ctx);
    lock->Lock();
  }

  // A block of a size class from the cache or the device; null if neither has one.
  void* Take(Context ctx, Pool* pool, int64_t size) MXTRAIN_REQUIRES(mutex_) {
    if (const auto found = pool->cache.find(size); found != pool->cache.end()) {
      void* data = found->second.back().data;
      found->second.pop_back();
      if (found->second.empty()) pool->cache.erase(found);
      pool->stats.cached -= size;
      return data;
    }
    void* data = AskDevice(ctx, pool, size);
    if (!data && pool->stats.cached > 0) {
      Drain(ctx, pool);
      data = AskDevice(ctx, pool, size);
    }
    return data;
  }

  void* AskDevice(Context ctx, Pool* pool, int64_t size) MXTRAIN_REQUIRES(mutex_) {
    ++pool->stats.allocations;
    return backend_(ctx).Allocate(ctx, size);
  }

  // Returns the least recently freed block to the device. A linear search: there are only about
  // eight classes per power of two.
  void Evict(Context ctx, Pool* pool) MXTRAIN_REQUIRES(mutex_) {
    const auto oldest =
        std::min_element(pool->cache.begin(), pool->cache.end(), [](const auto& a, const auto& b) {
          return a.second.front().serial < b.second.front().serial;
        });
    backend_(ctx).Free(ctx, oldest->second.front().data);
    pool->stats.cached -= oldest->first;
    ++pool->stats.evictions;
    oldest->second.pop_front();
    if (oldest->second.empty()) pool->cache.erase(oldest);
  }

  void Drain(Context ctx, Pool* pool) MXTRAIN_REQUIRES(mutex_) {
    for (auto& [size, blocks] : pool->cache) {
      for (const Freed& block : blocks) backend_(ctx).Free(ctx, block.data);
    }
    pool->cache.clear();
    pool->stats.cached = 0;
  }

  [[noreturn]] static void ThrowFull(Context ctx, const Pool& pool, int64_t bytes,
                                     const char* who) {
    std::map<std::string, std::pair<int64_t, int>> by_holder;  // bytes and blocks
    for (const auto& [data, block] : pool.live) {
      by_holder[block.who].first += block.bytes;
      by_holder[block.who].second += 1;
    }
    std::vector<std::pair<std::string, std::pair<int64_t, int>>> holders(by_holder.begin(),
                                                                         by_holder.end());
    std::stable_sort(holders.begin(), holders.end(),
                     [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
    if (holders.size() > kHoldersNamed) holders.resize(kHoldersNamed);
    std::string list;
    for (const auto& [name, sum] : holders) {
      list += format("{}'{}' {}", list.empty() ? "" : ", ", name, FormatBytes(sum.first));
      if (sum.second > 1) list += format(" in {} blocks", sum.second);
    }
    Throw(
        ErrorKind::kMemory,
        "{} has no room for {} ('{}'): {} in use{}{}; make the batch smaller or set memory_budget",
        ctx.ToString(), FormatBytes(bytes), who, FormatBytes(pool.stats.in_use),
        list.empty() ? "" : ", most by ", list);
  }

  const std::function<Backend&(Context)> backend_;
  const std::function<bool()> await_free_;
  const std::function<void(Context)> release_idle_;
  mutable Mutex mutex_;
  std::map<Context, Pool> pools_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Storage> Storage::Create(std::function<Backend&(Context)> backend,
                                         std::function<bool()> await_free,
                                         std::function<void(Context)> release_idle) {
  return std::make_unique<PooledStorage>(std::move(backend), std::move(await_free),
                                         std::move(release_idle));
}

}  // namespace mxtrain
