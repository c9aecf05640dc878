#pragma once
// Examples in memory, after decoding and the transforms that draw nothing at random. Private to io.
#include <atomic>
#include <memory>
#include <vector>

#include "mxtrain/io/image.h"

namespace mxtrain::io {

struct CachedExample {
  std::vector<Image> pictures;                   // per data field; empty for one of numbers
  std::vector<std::vector<float>> data, labels;  // per field; empty for a picture
};

// Every call may come from any thread.
class ExampleCache {
 public:
  ExampleCache(int64_t examples, int64_t most_bytes) : most_bytes_(most_bytes), entries_(static_cast<size_t>(examples)) {}
  ~ExampleCache();

  // Null where it is not there. Lives as long as the cache.
  const CachedExample* Find(int64_t index) const { return entries_[static_cast<size_t>(index)].load(std::memory_order_acquire); }
  // Keeps the example unless it is there already or does not fit; from then on the cache is full.
  void Add(int64_t index, CachedExample example);
  bool full() const { return full_.load(std::memory_order_relaxed); }
  int64_t count() const { return count_.load(std::memory_order_relaxed); }
  int64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  const int64_t most_bytes_;
  std::vector<std::atomic<const CachedExample*>> entries_;
  std::atomic<int64_t> bytes_{0}, count_{0};
  std::atomic<bool> full_{false};
};

}  // namespace mxtrain::io
