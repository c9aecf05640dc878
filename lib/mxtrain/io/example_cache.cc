#include "mxtrain/io/example_cache.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

namespace mxtrain::io {
namespace {

int64_t BytesOf(const CachedExample& example) {
  size_t bytes = sizeof example;
  for (const Image& picture : example.pictures) bytes += sizeof picture + picture.pixels.size();
  for (const auto* fields : {&example.data, &example.labels}) {
    for (const std::vector<float>& values : *fields) bytes += sizeof values + values.size() * sizeof(float);
  }
  return static_cast<int64_t>(bytes);
}

// The first number after `key` in a small file of the system; the greatest there is without one ("max", no such file).
int64_t NumberIn(const char* file, const std::string& key) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t found = text.find(key);
  int64_t number = std::numeric_limits<int64_t>::max();
  if (found == std::string::npos) return number;
  const size_t begin = text.find_first_not_of(" \t", found + key.size());
  if (begin != std::string::npos) std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
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
  if (entries_[static_cast<size_t>(index)].compare_exchange_strong(expected, kept.get(), std::memory_order_acq_rel)) {
    kept.release();
    count_.fetch_add(1, std::memory_order_relaxed);
  } else {
    bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
}

int64_t AvailableMemory() {
  const int64_t machine = NumberIn("/proc/meminfo", "MemAvailable:");
  const int64_t free = machine == std::numeric_limits<int64_t>::max() ? machine : machine * 1024;
  const int64_t limit = NumberIn("/sys/fs/cgroup/memory.max", ""), used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (limit == std::numeric_limits<int64_t>::max() || used == std::numeric_limits<int64_t>::max()) return free;
  return std::min(free, std::max<int64_t>(0, limit - used));
}

}  // namespace mxtrain::io
