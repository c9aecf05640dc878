// SPDX-License-Identifier: Apache-2.0
// Arrays on an asynchronous, small device whose memory the host cannot access: the contract of
// copies and of memory.
#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <future>
#include <numeric>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/ndarray/ndarray.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/fake_stream.h"
#include "tests/support/gpus.h"

namespace mxtrain::test {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20;

// Work that lasts until it is released.
class Gate {
 public:
  void Open() { open_.set_value(); }
  std::function<void()> Work() const {
    return [opened = opened_] { opened.wait(); };
  }

 private:
  std::promise<void> open_;
  std::shared_future<void> opened_ = open_.get_future().share();
};

void PushToDevice(Runtime& runtime, const NDArray& array, std::function<void()> work) {
  const engine::VarHandle writes[] = {array.var()};
  runtime.engine().PushSync([work = std::move(work)](RunContext ctx) { Do(ctx, work); }, {}, writes,
                            {.ctx = array.ctx(), .name = "work"});
}

NDArray MebibyteOn(Runtime& runtime, Context ctx) {
  return NDArray(runtime, {kMiB / 4}, DType::kFloat32, ctx);
}

// A copy of a copy of a copy ...
NDArray CopyOften(NDArray array, int times) {
  for (int i = 0; i < times; ++i) array = array.Copy(array.ctx());
  return array;
}

TEST_CASE("pending functions hold no memory: a thousand copies need that of three arrays") {
  const auto runtime = NewFakeGpuRuntime();
  const NDArray first = MebibyteOn(*runtime, Context::cpu());
  first.WaitToWrite();
  NDArray(first).Fill(3);
  first.WaitToRead();
  const int64_t before = runtime->storage().GetStats(Context::cpu()).in_use;
  Gate gate;
  NDArray held = first;
  const engine::VarHandle writes[] = {held.var()};
  runtime->engine().PushSync([work = gate.Work()](RunContext) { work(); }, {}, writes, {});
  const NDArray last = CopyOften(first, 1000);
  CHECK(runtime->storage().GetStats(Context::cpu()).in_use == before);
  gate.Open();
  last.WaitToRead();
  CHECK(runtime->storage().GetStats(Context::cpu()).peak <= before + 2 * kMiB);
  CHECK(last.ToVector() == std::vector<float>(kMiB / 4, 3.0f));
}

void OnGpu(Runtime& runtime, engine::Fn work) {
  const NDArray order(runtime, {1});
  const engine::VarHandle writes[] = {order.var()};
  runtime.engine().PushSync(std::move(work), {}, writes, {.ctx = kGpu, .name = "work"});
  order.WaitToWrite();
}

TEST_CASE("temporary space grows once the stream no longer uses the smaller block") {
  const auto runtime = NewSmallGpuRuntime(8 * kMiB);
  std::atomic<bool> used = false;
  bool used_before_growth = false;
  OnGpu(*runtime, [&](RunContext ctx) {
    const SpaceLease space = runtime->resources().TakeSpace(ctx);
    space->Get(kMiB, "small");
    Do(ctx, [&] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      used = true;
    });
    space->Get(2 * kMiB, "large");
    used_before_growth = used;
  });
  CHECK(used_before_growth);
  CHECK(runtime->resources().GetStats(kGpu).peak == 2 * kMiB);
}

TEST_CASE("a device that is full gets back the temporary space that nobody uses") {
  const auto runtime = NewSmallGpuRuntime(3 * kMiB);
  OnGpu(*runtime,
        [&](RunContext ctx) { runtime->resources().TakeSpace(ctx)->Get(2 * kMiB, "work"); });
  runtime->resources().TakeSpace({Context::cpu(), nullptr})->Get(64, "work on the host");
  NDArray array(*runtime, {kMiB / 2}, DType::kFloat32, kGpu);
  array.Fill(3);
  CHECK(array.ToVector() == std::vector<float>(kMiB / 2, 3.0f));
  CHECK(runtime->resources().GetStats(kGpu).bytes == 0);
  CHECK(runtime->resources().GetStats(Context::cpu()).bytes == 64);
}

TEST_CASE("a device that is full waits for the memory that its own work still uses") {
  const auto runtime = NewSmallGpuRuntime(3 * kMiB);
  NDArray first = MebibyteOn(*runtime, kGpu);
  first.Fill(5);
  const NDArray last = CopyOften(first, 300);
  CHECK(last.ToVector() == std::vector<float>(kMiB / 4, 5.0f));
  CHECK(runtime->storage().GetStats(kGpu).peak <= 3 * kMiB);
}

TEST_CASE(
    "a device that is full for good is an error of the array that could not be allocated, and the "
    "rest continues") {
  const auto runtime = NewSmallGpuRuntime(3 * kMiB);
  NDArray a = MebibyteOn(*runtime, kGpu), b = MebibyteOn(*runtime, kGpu),
          c = MebibyteOn(*runtime, kGpu);
  NDArray d(*runtime, {kMiB / 4}, DType::kFloat32, kGpu, Layout(), "the fourth");
  a.Fill(1), b.Fill(2), c.Fill(3);
  runtime->engine().WaitForAll();  // each has its memory
  d.CopyFrom(a);
  CHECK_THROWS_WITH_AS(d.WaitToRead(),
                       doctest::Contains("no room for 1 MiB ('the fourth'): 3 MiB in use"), Error);
  CHECK(c.ToVector()[0] == 3);
  c = NDArray();
  d.CopyFrom(b);  // all of it, so the error is cleared
  CHECK(d.ToVector() == std::vector<float>(kMiB / 4, 2.0f));
}

TEST_CASE("an immediate allocation waits for what pushed functions still use") {
  const auto runtime = NewSmallGpuRuntime(2 * kMiB);
  Gate gate;
  {
    NDArray large(*runtime, {kMiB / 2}, DType::kFloat32, kGpu);
    large.data();
    PushToDevice(*runtime, large, gate.Work());
  }
  auto opener = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    gate.Open();
  });
  NDArray next(*runtime, {kMiB / 2}, DType::kFloat32, kGpu);
  CHECK(next.data().data != nullptr);
  opener.get();
}

TEST_CASE("a caller far ahead of a device does not fill it with memory about to be freed") {
  const auto runtime = NewFakeGpuRuntime();
  NDArray first = MebibyteOn(*runtime, kGpu);
  first.Fill(7);
  Gate gate;
  PushToDevice(*runtime, first, gate.Work());
  const NDArray last = CopyOften(first, 400);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // for the worker to issue its work
  const Storage::Stats stats = runtime->storage().GetStats(kGpu);
  CHECK(stats.in_use <= Storage::kMostRetired + 4 * kMiB);
  gate.Open();
  CHECK(last.ToVector() == std::vector<float>(kMiB / 4, 7.0f));
  CHECK(runtime->storage().GetStats(kGpu).peak <= Storage::kMostRetired + 4 * kMiB);
}

TEST_CASE("parts of one array that overlap are copied as if all were read first, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  const int64_t n = 9;
  std::vector<float> numbers(n);
  std::iota(numbers.begin(), numbers.end(), 1.0f);
  for (const Context ctx : {Context::cpu(), kGpu}) {
    for (int64_t from = 0; from < n; ++from) {
      for (int64_t to = 0; to < n; ++to) {
        for (int64_t length = 0; length <= n - std::max(from, to); ++length) {
          const NDArray array = NDArray::FromVector(*runtime, {n}, numbers, ctx);
          array.Slice(to, to + length).CopyFrom(array.Slice(from, from + length));
          std::vector<float> wanted = numbers;
          for (int64_t i = 0; i < length; ++i) wanted[to + i] = numbers[from + i];
          CHECK_MESSAGE(array.ToVector() == wanted, length, " from ", from, " to ", to, " on ",
                        ctx.ToString());
        }
      }
    }
  }
}

// The layouts and devices of an array of this shape.
std::vector<NDArray> EveryPlace(Runtime& runtime, const TShape& shape, DType type) {
  std::vector<NDArray> arrays;
  for (const Context ctx : {Context::cpu(), Context::cpu_pinned(), kGpu}) {
    for (const char* layout : {"", "aBcd8b"}) {
      if (*layout && shape.ndim() != 4) continue;
      arrays.emplace_back(
          runtime, shape, type, ctx,
          *layout ? runtime.backend(ctx).Intern(BlockedLayout::FromName(layout)) : Layout());
    }
  }
  return arrays;
}

TEST_CASE("a fill gives every size, layout and type its value, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  for (const DType type : {DType::kFloat32, DType::kFloat16, DType::kUint8, DType::kInt64}) {
    for (const TShape& shape :
         {TShape::Parse("()"), TShape{0}, TShape{1}, TShape{4095}, TShape{4096}, TShape{4097},
          TShape{100003}, TShape{1, 8, 3, 5}, TShape{2, 11, 20, 31}}) {
      for (NDArray& array : EveryPlace(*runtime, shape, type)) {
        CAPTURE(NameOf(type));
        CAPTURE(shape.ToString());
        CAPTURE(array.ctx().ToString());
        CAPTURE(array.layout().Name());
        array = 7;
        CHECK(array.ToVector() == std::vector<float>(static_cast<size_t>(shape.Size()), 7.0f));
        array.Fill(0);
        CHECK(array.ToVector() == std::vector<float>(static_cast<size_t>(shape.Size())));
      }
    }
  }
}

TEST_CASE("a fill of a view leaves the rest of the array alone, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  for (const Context ctx : {Context::cpu(), kGpu}) {
    NDArray array(*runtime, {30000}, DType::kFloat32, ctx);
    array = 1;
    array.Slice(10000, 20000).Reshape({100, 100}) = 2.5;
    std::vector<float> wanted(30000, 1.0f);
    std::fill(wanted.begin() + 10000, wanted.begin() + 20000, 2.5f);
    CHECK(array.ToVector() == wanted);
  }
}

TEST_CASE("a fill does not wait for the array, on every device and in every layout") {
  const auto runtime = NewFakeGpuRuntime();
  for (NDArray& array : EveryPlace(*runtime, {2, 11, 3, 5}, DType::kFloat32)) {
    CAPTURE(array.ctx().ToString());
    CAPTURE(array.layout().Name());
    Gate gate;
    const engine::VarHandle writes[] = {array.var()};
    runtime->engine().PushSync([work = gate.Work()](RunContext) { work(); }, {}, writes,
                               {.ctx = array.ctx(), .property = engine::FnProperty::kIO});
    auto caller = std::async(std::launch::async, [&] { array.Fill(2.5); });
    CHECK(caller.wait_for(std::chrono::seconds(20)) == std::future_status::ready);
    gate.Open();
    caller.get();
    CHECK(array.ToVector() == std::vector<float>(330, 2.5f));
  }
}

TEST_CASE("a fill with a value that the type cannot hold is refused at once, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  for (NDArray& array : EveryPlace(*runtime, {2, 11, 3, 5}, DType::kUint8)) {
    array = 3;
    CHECK_THROWS_WITH_AS(array = 256, "256 is not a value of uint8", Error);
    CHECK(array.ToVector() == std::vector<float>(330, 3.0f));
  }
}

TEST_CASE("an array may be filled inside an engine function, on every device") {
  const auto runtime = NewFakeGpuRuntime();
  for (NDArray& array : EveryPlace(*runtime, {2, 11, 3, 5}, DType::kFloat32)) {
    runtime->engine().PushSync([&](RunContext) { array = 4; }, {}, {}, {.name = "inside"});
    runtime->engine().WaitForAll();
    CHECK(array.ToVector() == std::vector<float>(330, 4.0f));
  }
}

TEST_CASE("an assignment of a number fills, an empty initializer makes a handle empty") {
  const auto runtime = NewFakeGpuRuntime();
  NDArray array(*runtime, {2});
  const NDArray other = array;
  array = true;
  CHECK(other.ToVector() == std::vector<float>{1, 1});
  array = {};
  CHECK(array.empty());
  CHECK(other.ToVector() == std::vector<float>{1, 1});
  CHECK_THROWS_WITH_AS(array = 1, "an empty NDArray was used; give it a shape first", Error);
}

}  // namespace
}  // namespace mxtrain::test
