// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/device/cpu/one_thread.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

TEST_CASE("contexts print and parse") {
  CHECK(Context::Parse("cpu") == Context::cpu());
  CHECK(Context::Parse("gpu:1") == Context::gpu(1));
  CHECK(Context::Parse("gpu(3)") == Context::gpu(3));
  CHECK(Context::Parse("cpu_pinned") == Context::cpu_pinned());
  CHECK(Context::gpu(2).ToString() == "gpu(2)");
  for (const char* text : {"", "tpu", "gpu:", "gpu:-1", "gpu(1", "gpu:1x", "cpu0x"}) {
    CAPTURE(text);
    CHECK_THROWS_AS(Context::Parse(text), Error);
  }
}

TEST_CASE("a device that a build or machine lacks is rejected with the reason") {
  const auto cpu = NewCpuBackend(1);
  CheckDevice(*cpu, Context::cpu());
  CheckDevice(*cpu, Context::cpu(1));
  CHECK_THROWS_AS(CheckDevice(*cpu, Context::cpu(100000)), Error);
  const auto gpu = NewGpuBackend();
  if (gpu->DeviceCount() == 0) {
    CHECK_FALSE(gpu->WhyAbsent().empty());
    CHECK_THROWS_WITH_AS(CheckDevice(*gpu, Context::gpu()),
                         ("gpu(0) is not available: " + gpu->WhyAbsent()).c_str(), Error);
  }
}

TEST_CASE("CPU memory is aligned, large blocks to huge pages, and a failure is a null pointer") {
  const auto cpu = NewCpuBackend(1);
  for (int64_t bytes : {1, 63, 4096, 100000, 2 << 20, (5 << 20) + 1}) {
    void* data = cpu->Allocate(Context::cpu(), bytes);
    REQUIRE(data);
    CHECK(reinterpret_cast<uintptr_t>(data) % (bytes >= 2 << 20 ? 2 << 20 : 64) == 0);
    static_cast<char*>(data)[bytes - 1] = 1;
    cpu->Free(Context::cpu(), data);
  }
  CHECK(cpu->Allocate(Context::cpu(), int64_t{1} << 60) == nullptr);
}

TEST_CASE("the pieces cover the range once, respect the grain, and depend on nothing else") {
  for (int team : {1, 2, 3, 7}) {
    SetTeamSize(team);
    CHECK(TeamSize() == team);
    for (int64_t n : {0, 1, 5, 16, 17, 1000, 1023}) {
      for (int64_t grain : {0, 1, 4, 100, 2000}) {
        CAPTURE(n);
        CAPTURE(grain);
        std::vector<std::atomic<int>> hits(static_cast<size_t>(n));
        std::vector<int64_t> size(static_cast<size_t>(team), -1);
        ParallelForPieces(n, grain, [&](int64_t begin, int64_t end, int piece) {
          size.at(static_cast<size_t>(piece)) = end - begin;
          for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
        });
        for (const auto& hit : hits) REQUIRE(hit == 1);
        for (int64_t s : size) {
          if (s >= 0 && n >= grain) CHECK(s >= grain);
        }
      }
    }
  }
  SetTeamSize(1);
}

TEST_CASE("a nested loop is divided like an outer one, and runs on its thread") {
  SetTeamSize(3);
  std::atomic<int> pieces = 0, foreign = 0;
  ParallelFor(3, 1, [&](int64_t, int64_t) {
    const auto self = std::this_thread::get_id();
    ParallelFor(9, 1, [&](int64_t, int64_t) {
      ++pieces;
      if (std::this_thread::get_id() != self) ++foreign;
    });
  });
  CHECK(pieces == 9);
  CHECK(foreign == 0);
  SetTeamSize(1);
}

TEST_CASE("the thread count of a backend is set for the calling thread only") {
  const auto cpu = NewCpuBackend(5);
  CHECK(cpu->threads() == 5);
  std::thread([&] {
    cpu->EnterThread();
    CHECK(TeamSize() == 5);
  }).join();
  CHECK(NewCpuBackend(0)->threads() == UsableCpuCount());
  CHECK(UsableCpuCount() >= 1);
}

TEST_CASE("work for one thread runs on the thread that calls, and the team is there afterwards") {
  const char* const limit = std::getenv("OMP_THREAD_LIMIT");
  const int team = limit ? std::min(3, std::atoi(limit)) : 3, before = TeamSize();
  SetTeamSize(3);
  const auto threads_of_loop = [] {
    std::atomic<int> others{0};
    const auto caller = std::this_thread::get_id();
    ParallelFor(3, 1, [&](int64_t, int64_t) { others += std::this_thread::get_id() != caller; });
    return others.load();
  };
  CHECK(threads_of_loop() == team - 1);
  {
    const OneThread alone, again;
    CHECK(TeamSize() == 1);
    CHECK(threads_of_loop() == 0);
  }
  {
    const OneThread not_wanted(false);
    CHECK(TeamSize() == 3);
  }
  CHECK(TeamSize() == 3);
  CHECK(threads_of_loop() == team - 1);
  SetTeamSize(before);
}

TEST_CASE("control groups limit the count of CPUs") {
  namespace fs = std::filesystem;
  const fs::path root = fs::temp_directory_path() / ("mxtrain_cgroup_" + std::to_string(getpid()));
  auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text;
  };
  write("cpu.max", "max 100000\n");
  write("pod/cpu.max", "350000 100000\n");
  write("pod/box/cpu.max", "max 100000\n");
  write("small/cpu.max", "50000 100000\n");
  write("cpu/old/cpu.cfs_quota_us", "200000\n");
  write("cpu/old/cpu.cfs_period_us", "100000\n");
  write("cpu/free/cpu.cfs_quota_us", "-1\n");
  write("cpu/free/cpu.cfs_period_us", "100000\n");
  CHECK(CgroupCpuQuota("0::/\n", root) == 0);
  CHECK(CgroupCpuQuota("0::/pod\n", root) == 3);
  CHECK(CgroupCpuQuota("0::/pod/box\n", root) == 3);  // the parent's quota applies
  CHECK(CgroupCpuQuota("0::/small\n", root) == 1);
  CHECK(CgroupCpuQuota("5:cpuset:/old\n4:cpu,cpuacct:/old\n0::/\n", root) == 2);
  CHECK(CgroupCpuQuota("4:cpu,cpuacct:/free\n", root) == 0);
  CHECK(CgroupCpuQuota("", root) == 0);
  CHECK(CgroupCpuQuota("nonsense\n", root) == 0);
  fs::remove_all(root);
}

}  // namespace
}  // namespace mxtrain
