// SPDX-License-Identifier: Apache-2.0
// GPU memory: allocation and its limits, copies, fills, layouts and types, compared with the CPU.
#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/blocked_layout.h"
#include "mxtrain/ndarray/ndarray.h"
#include "mxtrain/operator/arithmetic.h"
#include "tests/gpu/runtime.h"
#include "tests/support/gpus.h"

namespace mxtrain::test {
namespace {

std::vector<float> Numbers(int64_t n) {
  std::vector<float> numbers(static_cast<size_t>(n));
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = static_cast<float>(static_cast<int64_t>(i * 2654435761u % 2003) - 1001) / 64;
  return numbers;
}

TEST_CASE("blocks are aligned, and a failed allocation returns null") {
  const auto gpu = NewGpuBackend();
  for (const int64_t bytes : {int64_t{1}, int64_t{100}, int64_t{1} << 20}) {
    void* data = gpu->Allocate(kGpu, bytes);
    REQUIRE(data);
    CHECK(reinterpret_cast<uintptr_t>(data) % 256 == 0);
    gpu->Free(kGpu, data);
  }
  CHECK(gpu->Allocate(kGpu, int64_t{1} << 45) == nullptr);
  void* after = gpu->Allocate(kGpu, 64);  // the failure does not persist
  CHECK(after);
  gpu->Free(kGpu, after);
  const auto runtime = GpuRuntime();
  NDArray huge(*runtime, TShape{int64_t{1} << 43}, DType::kFloat32, kGpu, {}, "huge");
  // Memory is taken by the operation that first writes.
  CHECK_THROWS_WITH_AS(
      [&] {
        huge.Fill(0);
        huge.WaitToRead();
      }(),
      doctest::Contains("('huge')"), Error);
}

TEST_CASE("copies to the GPU round-trip through host, pinned and device memory") {
  for (const char* engine : {"naive", "threaded"}) {
    const auto runtime = GpuRuntime(engine);
    for (const int64_t n : {1, 7, 1000, 1 << 20}) {
      const std::vector<float> numbers = Numbers(n);
      const NDArray there = NDArray::FromVector(*runtime, {n}, numbers, kGpu);
      CHECK(there.ToVector() == numbers);
      CHECK(there.Copy(kGpu).ToVector() == numbers);
      const NDArray pinned = there.Copy(Context::cpu_pinned());
      CHECK(pinned.ToVector() == numbers);
      CHECK(pinned.Copy(kGpu).Copy(Context::cpu()).ToVector() == numbers);
      NDArray zeros = there.Copy(kGpu);
      zeros.Fill(0);
      CHECK(zeros.ToVector() == std::vector<float>(static_cast<size_t>(n)));
      zeros.Fill(2.5);
      CHECK(zeros.ToVector() == std::vector<float>(static_cast<size_t>(n), 2.5f));
      const NDArray empty(*runtime, {0}, DType::kFloat32, kGpu);
      CHECK(empty.ToVector().empty());
    }
  }
}

TEST_CASE("copies between GPUs, each to each, while both work") {
  const auto runtime = GpuRuntime();
  const int gpus = runtime->backend(kGpu).DeviceCount();
  for (const int64_t n : {1, 1000, 1 << 22}) {
    const std::vector<float> numbers = Numbers(n);
    for (int from = 0; from < gpus; ++from) {
      for (int to = 0; to < gpus; ++to) {
        NDArray first = NDArray::FromVector(*runtime, {n}, numbers, Context::gpu(from));
        first *= 2;
        NDArray second = first.Copy(Context::gpu(to));
        first.Fill(0);  // after the copy has read it
        second *= 0.5;  // after it has come
        CHECK(second.ToVector() == numbers);
      }
    }
  }
}

// The stored bytes of an array in a layout, as the CPU and the GPU create them.
TEST_CASE("layouts and types match the CPU byte for byte") {
  const auto runtime = GpuRuntime();
  Backend &cpu = runtime->backend(Context::cpu()), &gpu = runtime->backend(kGpu);
  for (const TShape& shape :
       {TShape{2, 3, 5, 7}, TShape{1, 64, 33, 1}, TShape{70, 130, 3, 3}, TShape{9, 64, 65, 67}}) {
    const std::vector<float> numbers = Numbers(shape.Size());
    const NDArray host = NDArray::FromVector(*runtime, shape, numbers), device = host.Copy(kGpu);
    for (const char* name : {"acdb", "aBcd8b", "ABcd8b8a", "bacd"}) {
      const Layout on_cpu = cpu.Intern(BlockedLayout::FromName(name)),
                   on_gpu = gpu.Intern(BlockedLayout::FromName(name));
      CHECK(on_gpu == gpu.Intern(BlockedLayout::FromName(name)));
      const NDArray there = device.ToLayout(on_gpu);
      CHECK(there.ToPlain().ToVector() == numbers);
      const int64_t bytes = on_cpu.Bytes(shape, DType::kFloat32);
      std::vector<char> raw(static_cast<size_t>(bytes));
      there.WaitToRead();
      const auto stream = gpu.NewStream(kGpu, 0);
      const auto event = stream->NewEvent();
      gpu.CopyBytes({kGpu, stream.get()}, kGpu, there.data().data, Context::cpu(), raw.data(),
                    bytes);
      stream->Record(*event);
      event->Wait();
      const NDArray expected = host.ToLayout(on_cpu);
      expected.WaitToRead();
      CHECK(std::memcmp(raw.data(), expected.data().data, raw.size()) == 0);
    }
  }
}

TEST_CASE("bytes put on the GPU are those at the time of the call") {
  const auto runtime = GpuRuntime();
  Backend& gpu = runtime->backend(kGpu);
  constexpr int kTimes = 1000;
  const NDArray there(*runtime, {kTimes, 2}, DType::kInt64, kGpu);
  auto* const to = static_cast<int64_t*>(there.data().data);
  std::vector<int64_t> back(2 * kTimes);
  const auto stream = gpu.NewStream(kGpu, 0);
  const auto event = stream->NewEvent();
  const RunContext ctx{kGpu, stream.get()};
  int64_t value[2] = {};
  for (int i = 0; i < kTimes; ++i) {
    value[0] = i;
    value[1] = -i;
    gpu.PutBytes(ctx, value, to + 2 * i, sizeof value);
  }
  gpu.CopyBytes(ctx, kGpu, to, Context::cpu(), back.data(), sizeof value * kTimes);
  stream->Record(*event);
  event->Wait();
  for (int i = 0; i < kTimes; ++i)
    CHECK((back[static_cast<size_t>(2 * i)] == i && back[static_cast<size_t>(2 * i + 1)] == -i));
}

TEST_CASE("narrow types round as on the CPU") {
  const auto runtime = GpuRuntime();
  Backend& gpu = runtime->backend(kGpu);
  std::vector<float> numbers = Numbers(4096);
  for (float special : {0.0f, -0.0f, 1e-8f, 6e-8f, 65504.0f, 65520.0f, 1e30f, -1e-40f, 3.4e38f})
    numbers.push_back(special);
  const auto n = static_cast<int64_t>(numbers.size());
  const NDArray wide = NDArray::FromVector(*runtime, {n}, numbers, kGpu);
  wide.WaitToRead();
  const auto stream = gpu.NewStream(kGpu, 0);
  const auto event = stream->NewEvent();
  const auto check = [&](DType type, auto tag) {
    using T = decltype(tag);
    const NDArray narrow(*runtime, {n}, type, kGpu), back(*runtime, {n}, DType::kFloat32, kGpu);
    const RunContext ctx{kGpu, stream.get()};
    gpu.Reorder(ctx, wide.spec(), wide.data().data, narrow.spec(), narrow.data().data);
    gpu.Reorder(ctx, narrow.spec(), narrow.data().data, back.spec(), back.data().data);
    stream->Record(*event);
    event->Wait();
    std::vector<T> bits(numbers.size());
    narrow.CopyToHost(bits.data(), n * 2);
    const std::vector<float> again = back.ToVector();
    for (size_t i = 0; i < numbers.size(); ++i) {
      const T expected(numbers[i]);
      CAPTURE(numbers[i]);
      CHECK(bits[i].bits == expected.bits);
      CHECK(again[i] == static_cast<float>(expected));
    }
  };
  check(DType::kFloat16, float16());
  check(DType::kBfloat16, bfloat16());
}

}  // namespace
}  // namespace mxtrain::test
