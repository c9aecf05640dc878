// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/storage/storage.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <deque>
#include <limits>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "mxtrain/base/error.h"

namespace mxtrain {
namespace {

// A device with a given amount of memory that tracks unreturned blocks.
class SmallDevice final : public Backend {
 public:
  explicit SmallDevice(int64_t capacity) : capacity_(capacity) {}
  ~SmallDevice() override { CHECK(live_.empty()); }
  int DeviceCount() const override { return 2; }
  std::string WhyAbsent() const override { return ""; }
  void* Allocate(Context, int64_t bytes) override {
    if (used_ + bytes > capacity_) return nullptr;
    void* data = std::malloc(static_cast<size_t>(bytes));
    live_[data] = bytes;
    used_ += bytes;
    return data;
  }
  void Free(Context, void* data) override {
    REQUIRE(live_.count(data) == 1);
    used_ -= live_[data];
    live_.erase(data);
    std::free(data);
  }
  std::unique_ptr<Stream> NewStream(Context, int) override { return nullptr; }
  Layout Intern(std::unique_ptr<LayoutDesc>) override { return {}; }
  void Reorder(RunContext, const TensorSpec&, const void*, const TensorSpec&, void*) override {}
  void CopyBytes(RunContext, Context, const void*, Context, void*, int64_t) override {}
  void PutBytes(RunContext, const void*, void*, int64_t) override {}
  void Zero(RunContext, void*, int64_t) override {}
  int64_t used() const { return used_; }

 private:
  int64_t capacity_;
  int64_t used_ = 0;
  std::map<void*, int64_t> live_;
};

// An unlimited device whose blocks are only addresses.
class CountingDevice final : public Backend {
 public:
  ~CountingDevice() override { CHECK(live_.empty()); }
  int DeviceCount() const override { return 1; }
  std::string WhyAbsent() const override { return ""; }
  void* Allocate(Context, int64_t) override {
    return reinterpret_cast<void*>(*live_.insert(last_ += 64).first);
  }
  void Free(Context, void* data) override {
    REQUIRE(live_.erase(reinterpret_cast<uintptr_t>(data)) == 1);
  }
  std::unique_ptr<Stream> NewStream(Context, int) override { return nullptr; }
  Layout Intern(std::unique_ptr<LayoutDesc>) override { return {}; }
  void Reorder(RunContext, const TensorSpec&, const void*, const TensorSpec&, void*) override {}
  void CopyBytes(RunContext, Context, const void*, Context, void*, int64_t) override {}
  void PutBytes(RunContext, const void*, void*, int64_t) override {}
  void Zero(RunContext, void*, int64_t) override {}

 private:
  uintptr_t last_ = 0;
  std::set<uintptr_t> live_;
};

std::unique_ptr<Storage> Over(Backend& backend) {
  return Storage::Create([&backend](Context) -> Backend& { return backend; });
}

const Context kCpu = Context::cpu();

TEST_CASE("freed blocks are reused without asking the device") {
  SmallDevice device(1 << 30);
  const auto storage = Over(device);
  const Storage::Handle a = storage->Alloc(kCpu, 1000, "a");
  CHECK(a.bytes == 1000);
  storage->Free(a);
  CHECK(storage->GetStats(kCpu).cached == 1024);
  const Storage::Handle b = storage->Alloc(kCpu, 1010, "b");
  CHECK(b.ptr == a.ptr);
  CHECK(storage->GetStats(kCpu).allocations == 1);
  CHECK(storage->GetStats(kCpu).cached == 0);
  storage->Free(b);
  storage->ReleaseCache(kCpu);
  CHECK(storage->GetStats(kCpu).cached == 0);
  CHECK(device.used() == 0);
}

TEST_CASE("cached blocks of one size have one owner each") {
  SmallDevice device(1 << 30);
  const auto storage = Over(device);
  std::vector<Storage::Handle> handles;
  for (int round = 0; round < 2; ++round) {
    handles.clear();
    for (int i = 0; i < 3; ++i) handles.push_back(storage->Alloc(kCpu, 64, "owner"));
    std::set<void*> places;
    for (const Storage::Handle& handle : handles) places.insert(handle.ptr);
    CHECK(places.size() == handles.size());
    for (const Storage::Handle& handle : handles) storage->Free(handle);
  }
  CHECK(storage->GetStats(kCpu).allocations == 3);
}

TEST_CASE("little is wasted at any size") {
  SmallDevice device(int64_t{1} << 40);
  const auto storage = Over(device);
  for (int64_t bytes :
       {1, 64, 65, 4095, 4097, 5000, 70000, 1 << 20, (1 << 20) + 1, 33333333, 100000000}) {
    const int64_t before = device.used();
    const Storage::Handle handle = storage->Alloc(kCpu, bytes, "x");
    const int64_t taken = device.used() - before;
    CHECK(taken >= bytes);
    CHECK(taken - bytes < std::max<int64_t>(64, bytes / 8 + 1));
    storage->Free(handle);
    storage->ReleaseCache(kCpu);
  }
}

TEST_CASE("statistics are kept per device") {
  SmallDevice device(1 << 30);
  const auto storage = Over(device);
  const Storage::Handle a = storage->Alloc(kCpu, 4096, "a"), b = storage->Alloc(kCpu, 2048, "b");
  storage->Alloc(Context::cpu(1), 64, "other");  // returned by the storage's end
  storage->Free(a);
  const Storage::Stats stats = storage->GetStats(kCpu);
  CHECK(stats.in_use == 2048);
  CHECK(stats.cached == 4096);
  CHECK(stats.peak == 6144);
  CHECK(stats.allocations == 2);
  CHECK(storage->GetStats(Context::cpu(1)).in_use == 64);
  CHECK(storage->GetStats(Context::gpu()).allocations == 0);
  storage->Free(b);
}

TEST_CASE("a full device releases its cache before it gives up") {
  SmallDevice device(10000);
  const auto storage = Over(device);
  storage->Free(storage->Alloc(kCpu, 4096, "small"));
  const Storage::Handle large = storage->Alloc(kCpu, 8192, "large");
  CHECK(large.ptr);
  CHECK(storage->GetStats(kCpu).cached == 0);
  storage->Free(large);
}

TEST_CASE("sizes that drift do not fill the device: the oldest blocks of the cache go back") {
  constexpr int64_t kMiB = int64_t{1} << 20;
  CountingDevice device;
  const auto storage = Over(device);
  // Drifting sizes: each round requests another class, so nothing in the cache is reused.
  for (int64_t i = 0; i < 200; ++i) {
    storage->Free(storage->Alloc(kCpu, (64 + 2 * i) * kMiB, "drifting"));
    const Storage::Stats stats = storage->GetStats(kCpu);
    REQUIRE(stats.in_use + stats.cached <= stats.peak + std::max(stats.peak, Storage::kCacheFloor));
  }
  CHECK(storage->GetStats(kCpu).evictions > 150);
  // The newest block is still there, the oldest is not.
  const int64_t asked = storage->GetStats(kCpu).allocations;
  const Storage::Handle newest = storage->Alloc(kCpu, (64 + 2 * 199) * kMiB, "newest");
  CHECK(storage->GetStats(kCpu).allocations == asked);
  const Storage::Handle oldest = storage->Alloc(kCpu, 64 * kMiB, "oldest");
  CHECK(storage->GetStats(kCpu).allocations == asked + 1);
  storage->Free(newest);
  storage->Free(oldest);
}

TEST_CASE("a program that repeats its sizes never asks the device again") {
  constexpr int64_t kMiB = int64_t{1} << 20;
  CountingDevice device;
  const auto storage = Over(device);
  auto round = [&](std::initializer_list<int64_t> sizes) {
    std::vector<Storage::Handle> held;
    for (int64_t size : sizes) held.push_back(storage->Alloc(kCpu, size * kMiB, "round"));
    for (const Storage::Handle& handle : held) storage->Free(handle);
  };
  // Two phases with nothing in common, each as large as the other.
  round({100, 300}), round({50, 340});
  const int64_t asked = storage->GetStats(kCpu).allocations;
  for (int i = 0; i < 5; ++i) round({100, 300}), round({50, 340});
  CHECK(storage->GetStats(kCpu).allocations == asked);
  CHECK(storage->GetStats(kCpu).evictions == 0);
}

TEST_CASE("a request beyond every device is rejected, without overflow") {
  CountingDevice device;
  const auto storage = Over(device);
  for (const int64_t bytes : {std::numeric_limits<int64_t>::max(),
                              std::numeric_limits<int64_t>::max() - 63, int64_t{1} << 62}) {
    CHECK_THROWS_WITH_AS(storage->Alloc(kCpu, bytes, "huge"), doctest::Contains("('huge')"), Error);
  }
  CHECK(storage->GetStats(kCpu).allocations == 0);
}

TEST_CASE("out of memory names the size, what is in use and who holds it") {
  SmallDevice device(10 << 10);
  const auto storage = Over(device);
  storage->Alloc(kCpu, 1024, "conv1_weight");
  storage->Alloc(kCpu, 2048, "data");
  storage->Alloc(kCpu, 2048, "data");
  try {
    storage->Alloc(kCpu, 8192, "arena");
    FAIL("8 KiB were given out of 5");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kMemory);
    CHECK(std::string(error.what()) ==
          "cpu(0) has no room for 8 KiB ('arena'): 5 KiB in use, most by 'data' 4 KiB in 2 blocks, "
          "'conv1_weight' 1 KiB; make the batch "
          "smaller or set memory_budget");
  }
  CHECK(storage->Alloc(kCpu, 4096, "fits").ptr);  // still usable
}

TEST_CASE("a full device waits for blocks that are about to be freed") {
  SmallDevice device(3000);
  std::vector<Storage::Handle> retired;
  Storage* freed_by = nullptr;
  const auto storage = Storage::Create([&](Context) -> Backend& { return device; },
                                       [&] {
                                         if (retired.empty()) return false;
                                         freed_by->Free(retired.back());
                                         retired.pop_back();
                                         return true;
                                       });
  freed_by = storage.get();
  for (int i = 0; i < 3; ++i) {
    retired.push_back(storage->Alloc(kCpu, 960, "going"));
    storage->Retire(retired.back());
  }
  CHECK(storage->GetStats(kCpu).retired == 2880);
  const Storage::Handle wide = storage->Alloc(kCpu, 1920, "wide");
  CHECK(wide.ptr);
  CHECK(retired.size() == 1);  // no more were awaited than it took
  CHECK(storage->GetStats(kCpu).retired == 960);
  CHECK_THROWS_AS(storage->Alloc(kCpu, 1920, "too wide"), Error);
  CHECK(retired.empty());
  CHECK(storage->GetStats(kCpu).retired == 0);
  storage->Free(wide);
}

TEST_CASE("a Free that comes just before the last check is not missed") {
  SmallDevice device(1000);
  Storage::Handle going;
  Storage* freed_by = nullptr;
  const auto storage =
      Storage::Create([&](Context) -> Backend& { return device; },
                      [&] {
                        freed_by->Free(going);  // by another thread, between the look and this call
                        return false;
                      });
  freed_by = storage.get();
  going = storage->Alloc(kCpu, 960, "going");
  const Storage::Handle next = storage->Alloc(kCpu, 960, "next");
  CHECK(next.ptr);
  storage->Free(next);
}

TEST_CASE("idle blocks are released when memory is exhausted, and only then") {
  SmallDevice device(2 * Storage::kMostRetired + (8 << 20));
  Storage::Handle idle;
  std::vector<Context> released;
  Storage* freed_by = nullptr;
  const auto storage =
      Storage::Create([&](Context) -> Backend& { return device; }, [] { return false; },
                      [&](Context ctx) {
                        released.push_back(ctx);
                        freed_by->Free(std::exchange(idle, {}));
                      });
  freed_by = storage.get();
  idle = storage->Alloc(kCpu, Storage::kMostRetired, "idle");
  storage->Retire(storage->Alloc(kCpu, Storage::kMostRetired + 1, "going"));
  storage->Alloc(kCpu, 64, "small");  // there is room, although much is about to be freed
  CHECK(released.empty());
  const Storage::Handle next = storage->Alloc(kCpu, Storage::kMostRetired, "next");
  CHECK(next.ptr);
  CHECK(released == std::vector<Context>{kCpu});
  CHECK_THROWS_AS(storage->Alloc(kCpu, Storage::kMostRetired, "too much"), Error);
}

TEST_CASE("what is about to be freed is bounded, full or not") {
  CountingDevice device;
  std::deque<Storage::Handle> retired;
  Storage* freed_by = nullptr;
  const auto storage = Storage::Create([&](Context) -> Backend& { return device; },
                                       [&] {
                                         if (retired.empty()) return false;
                                         freed_by->Free(retired.front());
                                         retired.pop_front();
                                         return true;
                                       });
  freed_by = storage.get();
  constexpr int64_t kMiB = int64_t{1} << 20;
  for (int i = 0; i < 500; ++i) {
    retired.push_back(storage->Alloc(kCpu, kMiB, "going"));
    storage->Retire(retired.back());
    REQUIRE(storage->GetStats(kCpu).in_use <= Storage::kMostRetired + kMiB);
  }
  CHECK(retired.size() == static_cast<size_t>(Storage::kMostRetired / kMiB + 1));
  while (!retired.empty()) storage->Free(retired.front()), retired.pop_front();
}

TEST_CASE("nothing and wrong") {
  SmallDevice device(1000);
  const auto storage = Over(device);
  const Storage::Handle none = storage->Alloc(kCpu, 0, "none");
  CHECK(none.ptr == nullptr);
  storage->Free(none);
  CHECK_THROWS_AS(storage->Alloc(kCpu, -1, "negative"), Error);
  const Storage::Handle a = storage->Alloc(kCpu, 10, "a");
  storage->Free(a);
  CHECK_THROWS_AS(storage->Free(a), Error);
}

TEST_CASE("several threads never get one block twice") {
  const auto device = NewCpuBackend(1);
  const auto storage = Over(*device);
  std::vector<std::thread> threads;
  std::atomic<int> torn = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        const Storage::Handle handle = storage->Alloc(kCpu, 64 * (1 + i % 5), "thread");
        volatile int* data = static_cast<int*>(handle.ptr);
        *data = t * 10000 + i;
        if (*data != t * 10000 + i) ++torn;
        storage->Free(handle);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(torn == 0);
  CHECK(storage->GetStats(kCpu).in_use == 0);
  CHECK(storage->GetStats(kCpu).allocations <= 20);
}

}  // namespace
}  // namespace mxtrain
