// SPDX-License-Identifier: Apache-2.0
#include "app/commands/cpu_share.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace mxtrain::commands {

CpuTimes ReadCpuTimes(const std::string& tasks) {
  CpuTimes sum;
  std::error_code none;
  for (const auto& task : std::filesystem::directory_iterator(tasks, none)) {
    double ran = 0, queued = 0;  // nanoseconds
    std::ifstream file(task.path() / "schedstat");
    if (!(file >> ran >> queued)) continue;
    sum.ran += ran / 1e9;
    sum.queued += queued / 1e9;
  }
  return sum;
}

double GivenShare(const CpuTimes& before, const CpuTimes& after, double seconds, int cpus) {
  const double ran = after.ran - before.ran, queued = after.queued - before.queued;
  const double wanted = std::min(ran + queued, seconds * cpus);
  return wanted > 0 ? std::clamp(ran / wanted, 0.0, 1.0) : 1;
}

}  // namespace mxtrain::commands
