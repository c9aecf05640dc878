// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/available_memory.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <iterator>
#include <limits>
#include <string>

namespace mxtrain {
namespace {

// The first number after `key` in a small system file; the largest value if there is none ("max",
// no such file).
int64_t NumberIn(const char* file, const std::string& key) {
  std::ifstream in(file);
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const size_t found = text.find(key);
  int64_t number = std::numeric_limits<int64_t>::max();
  if (found == std::string::npos) return number;
  const size_t begin = text.find_first_not_of(" \t", found + key.size());
  if (begin != std::string::npos)
    std::from_chars(text.data() + begin, text.data() + text.size(), number);
  return number;
}

}  // namespace

int64_t AvailableMemory() {
  const int64_t machine = NumberIn("/proc/meminfo", "MemAvailable:");
  const int64_t free = machine == std::numeric_limits<int64_t>::max() ? machine : machine * 1024;
  const int64_t limit = NumberIn("/sys/fs/cgroup/memory.max", ""),
                used = NumberIn("/sys/fs/cgroup/memory.current", "");
  if (limit == std::numeric_limits<int64_t>::max() || used == std::numeric_limits<int64_t>::max())
    return free;
  return std::min(free, std::max<int64_t>(0, limit - used));
}

}  // namespace mxtrain
