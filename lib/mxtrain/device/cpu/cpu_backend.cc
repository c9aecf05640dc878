// SPDX-License-Identifier: Apache-2.0
#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "mxtrain/base/error.h"
#include "mxtrain/base/format.h"
#include "mxtrain/base/mutex.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/cpu/cpu_count.h"
#include "mxtrain/device/cpu/internal/reorder.h"
#include "mxtrain/device/cpu/parallel.h"

namespace mxtrain {
namespace {

constexpr int64_t kZeroGrain = 65536;
constexpr int64_t kHugePage = int64_t{2} << 20;
constexpr int kLogicalDevices = 64;  // cpu(0), cpu(1), ... are aliases of the same cores and memory

// Model and vector extensions, of /proc/cpuinfo.
DeviceInfo DescribeProcessor() {
  std::ifstream file("/proc/cpuinfo");
  DeviceInfo info;
  info.name = "unknown";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) info.name = line.substr(line.find(':') + 2);
    if (!line.starts_with("flags")) continue;
    for (const char* name : {"avx2", "fma", "avx_vnni", "avx512f", "avx512bw", "avx512_vnni",
                             "avx512_bf16", "avx512_fp16", "amx_tile"}) {
      if ((line + " ").find(format(" {} ", name)) != std::string::npos)
        info.capability += (info.capability.empty() ? "" : " ") + std::string(name);
    }
    break;
  }
  return info;
}

class CpuBackend final : public Backend {
 public:
  explicit CpuBackend(int threads) : threads_(threads > 0 ? threads : UsableCpuCount()) {}

  int DeviceCount() const override { return kLogicalDevices; }
  std::string WhyAbsent() const override { return ""; }
  DeviceInfo Describe(int) const override { return DescribeProcessor(); }
  int threads() const override { return threads_; }

  void* Allocate(Context, int64_t bytes) override {
    const bool huge = bytes >= kHugePage;
    void* data = nullptr;
    if (posix_memalign(
            &data, huge ? static_cast<size_t>(kHugePage) : static_cast<size_t>(kBufferAlignment),
            static_cast<size_t>(bytes)) != 0)
      return nullptr;
    // Best effort: fails harmlessly without huge pages.
    if (huge) madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);
    return data;
  }
  void Free(Context, void* data) override { std::free(data); }

  std::unique_ptr<Stream> NewStream(Context, int) override { return nullptr; }
  void EnterThread() override { SetTeamSize(threads_); }

  Layout Intern(std::unique_ptr<LayoutDesc> desc) override {
    const MutexLock lock(mutex_);
    std::string name = desc->Name();
    return Layout(layouts_.try_emplace(std::move(name), std::move(desc)).first->second.get());
  }

  void Reorder(RunContext, const TensorSpec& from, const void* src, const TensorSpec& to,
               void* dst) override {
    ReorderCpu(from, src, to, dst);
  }
  void CopyBytes(RunContext, Context from, const void* src, Context to, void* dst,
                 int64_t bytes) override {
    if (from.type == DeviceType::kGPU || to.type == DeviceType::kGPU) {
      Throw(ErrorKind::kBug, "the CPU backend cannot copy from {} to {}", from.ToString(),
            to.ToString());
    }
    CopyBytesCpu(src, dst, bytes);
  }
  void PutBytes(RunContext, const void* value, void* dst, int64_t bytes) override {
    std::memcpy(dst, value, static_cast<size_t>(bytes));
  }
  void Zero(RunContext, void* data, int64_t bytes) override {
    char* begin = static_cast<char*>(data);
    ParallelFor(bytes, kZeroGrain, [begin](int64_t from, int64_t to) {
      std::memset(begin + from, 0, static_cast<size_t>(to - from));
    });
  }

 private:
  const int threads_;
  Mutex mutex_;
  // Descriptions are never removed.
  std::map<std::string, std::unique_ptr<LayoutDesc>> layouts_ MXTRAIN_GUARDED_BY(mutex_);
};

}  // namespace

std::unique_ptr<Backend> NewCpuBackend(int threads) {
  return std::make_unique<CpuBackend>(threads);
}

}  // namespace mxtrain
