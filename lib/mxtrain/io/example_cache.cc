// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/io/internal/example_cache.h"

namespace mxtrain::io {
namespace {

int64_t BytesOf(const CachedExample& example) {
  size_t bytes = sizeof example;
  for (const auto* images : {&example.images, &example.targets}) {
    for (const Image& image : *images)
      bytes += sizeof image + image.pixels.size() + 2 * image.deep.size();
  }
  for (const auto* fields : {&example.data, &example.labels}) {
    for (const std::vector<float>& values : *fields)
      bytes += sizeof values + values.size() * sizeof(float);
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

ExampleCache::~ExampleCache() {
  for (auto& entry : entries_) delete entry.load(std::memory_order_relaxed);
}

void ExampleCache::Add(int64_t index, CachedExample example) {
  const int64_t bytes = BytesOf(example);
  if (bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > most_bytes_) {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    full_.store(true, std::memory_order_relaxed);
    return;
  }
  auto kept = std::make_unique<const CachedExample>(std::move(example));
  const CachedExample* expected = nullptr;
  if (entries_[static_cast<size_t>(index)].compare_exchange_strong(expected, kept.get(),
                                                                   std::memory_order_acq_rel)) {
    static_cast<void>(kept.release());  // the destructor deletes it
    count_.fetch_add(1, std::memory_order_relaxed);
  } else {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

}  // namespace mxtrain::io
