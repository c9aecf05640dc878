// SPDX-License-Identifier: Apache-2.0
#pragma once
// Examples in memory, after decoding and the leading non-random transforms. Private to io.
#include <atomic>
#include <memory>
#include <vector>

#include "mxtrain/io/image.h"
#include "mxtrain/io/image_origin.h"

namespace mxtrain::io {

struct CachedExample {
  std::vector<Image> images, targets;            // per data and label field; empty for numeric ones
  std::vector<std::vector<float>> data, labels;  // per field; empty for an image
  ImageOrigin origin;                            // of the first image after those transforms
};

// Thread-safe.
class ExampleCache {
 public:
  ExampleCache(int64_t examples, int64_t most_bytes)
      : most_bytes_(most_bytes), entries_(static_cast<size_t>(examples)) {}
  ~ExampleCache();

  // Null if absent. Valid as long as the cache.
  const CachedExample* Find(int64_t index) const {
    return entries_[static_cast<size_t>(index)].load(std::memory_order_acquire);
  }
  // Stores the example unless it is present or does not fit; in that case the cache is full from
  // then on.
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
