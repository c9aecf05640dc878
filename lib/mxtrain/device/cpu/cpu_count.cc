// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/device/cpu/cpu_count.h"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string_view>
#include <thread>

#include "mxtrain/base/format.h"

namespace mxtrain {
namespace {

int AffinityCount() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) == 0) return std::max(CPU_COUNT(&set), 1);
  // More CPUs than a fixed-size mask holds.
  return static_cast<int>(std::max(std::thread::hardware_concurrency(), 1u));
}

// Processes that share the mask, and the quota.
std::atomic<int> sharing_mask{1}, sharing_quota{1};

int ShareOf(int cpus, int processes) {
  return cpus == 0 ? 0 : std::max(cpus / processes, 1);
}

int WholeCpus(int64_t quota, int64_t period) {
  return quota > 0 && period > 0 ? static_cast<int>(std::max<int64_t>(quota / period, 1)) : 0;
}

int Tighter(int a, int b) {
  return a == 0 ? b : b == 0 ? a : std::min(a, b);
}

// Version 2: "QUOTA PERIOD" or "max PERIOD" in microseconds.
int QuotaV2(const std::string& folder) {
  std::ifstream file(folder + "/cpu.max");
  int64_t quota = 0, period = 0;
  return file >> quota >> period ? WholeCpus(quota, period) : 0;
}

// Version 1: one number a file; -1 for no quota.
int QuotaV1(const std::string& folder) {
  std::ifstream quota_file(folder + "/cpu.cfs_quota_us"),
      period_file(folder + "/cpu.cfs_period_us");
  int64_t quota = 0, period = 0;
  return quota_file >> quota && period_file >> period ? WholeCpus(quota, period) : 0;
}

// A quota applies to every group below it, so the smallest one from the group up to the mount
// counts.
template <typename QuotaOf>
int TightestUpwards(const std::string& root, std::string path, QuotaOf quota_of) {
  int tightest = 0;
  for (;;) {
    tightest = Tighter(tightest, quota_of(root + path));
    const size_t slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return tightest;
    path.resize(slash);
  }
}

bool HasController(const std::string& controllers, std::string_view wanted) {
  std::istringstream list(controllers);
  for (std::string name; std::getline(list, name, ',');) {
    if (name == wanted) return true;
  }
  return false;
}

}  // namespace

int CgroupCpuQuota(const std::string& self, const std::string& root) {
  int tightest = 0;
  std::istringstream lines(self);
  for (std::string line;
       std::getline(lines, line);) {  // "ID:CONTROLLERS:PATH"; version 2 has no controllers
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    std::string path = line.substr(second + 1);
    if (path == "/") path.clear();
    if (controllers.empty()) tightest = Tighter(tightest, TightestUpwards(root, path, QuotaV2));
    if (HasController(controllers, "cpu")) {
      tightest = Tighter(tightest, TightestUpwards(root + "/cpu", path, QuotaV1));
      tightest =
          Tighter(tightest, TightestUpwards(format("{}/{}", root, controllers), path, QuotaV1));
    }
  }
  return tightest;
}

int UsableCpuCount() {
  std::ifstream file("/proc/self/cgroup");
  const std::string self((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  const int quota = CgroupCpuQuota(self, "/sys/fs/cgroup");
  return Tighter(ShareOf(AffinityCount(), sharing_mask), ShareOf(quota, sharing_quota));
}

void ShareCpus(int processes, bool own_mask) {
  sharing_quota = processes;
  sharing_mask = own_mask ? 1 : processes;
}

}  // namespace mxtrain
