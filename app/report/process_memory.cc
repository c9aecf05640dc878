// SPDX-License-Identifier: Apache-2.0
#include "app/report/process_memory.h"

#include <cstdlib>
#include <fstream>
#include <string>

namespace mxtrain::report {
namespace {

int64_t StatusValue(const std::string& key) {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with(key + ":")) return std::atoll(line.c_str() + key.size() + 1) * 1024;
  }
  return 0;
}

}  // namespace

int64_t PeakMemoryBytes() {
  return StatusValue("VmHWM");
}
int64_t CurrentMemoryBytes() {
  return StatusValue("VmRSS");
}

}  // namespace mxtrain::report
