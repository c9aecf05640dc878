// SPDX-License-Identifier: Apache-2.0
// The batch that fits is one that fits into the memory of each device.
#include "app/session/batch_fit.h"

#include <doctest/doctest.h>

#include "mxtrain/executor/memory_plan.h"
#include "tests/support/fake_gpu.h"
#include "tests/support/small_nets.h"

namespace mxtrain::session {
namespace {

const Context kFirst = Context::gpu(0), kSecond = Context::gpu(1);

TEST_CASE("every device has room for its own part, and the fullest one limits the batch") {
  const auto fit = [](int64_t first, int64_t second, int64_t most) {
    const MemoryBytes memory = {{kFirst, first}, {kSecond, second}};
    return PowerOfTwoWithin([&](Context device) { return memory.at(device); }, most,
                            [](int64_t batch) {
                              return MemoryBytes{{kFirst, 10 * batch}, {kSecond, 2 * batch}};
                            });
  };
  CHECK(fit(100, 1000, 64).batch == 8);
  CHECK(fit(100, 1000, 64).limit == kFirst);
  CHECK(fit(100, 10, 64).batch == 4);
  CHECK(fit(100, 10, 64).limit == kSecond);
  CHECK(fit(100, 100, 8).batch == 8);  // more together than the first device has
  CHECK_FALSE(fit(100, 100, 8).limit);
  CHECK(fit(100, 100, 7).batch == 4);
  CHECK(fit(5, 100, 64).batch == 1);
  CHECK(fit(5, 100, 64).limit == kFirst);
}

TEST_CASE("a part of a GPU's memory is left to libraries") {
  const auto free = [](int64_t bytes) {
    const auto runtime = test::NewSmallGpuRuntime(bytes);
    return FreeBytes(*runtime, kSecond);
  };
  constexpr int64_t kGiB = int64_t{1} << 30;
  CHECK(free(80 * kGiB) == 79 * kGiB);
  CHECK(free(kGiB / 2) == 0);
}

TEST_CASE("a text of bytes names devices if there are several") {
  CHECK(ToString({{Context::cpu(), 2048}}) == "2 KiB");
  CHECK(ToString({{kFirst, 1024}, {kSecond, 2048}}) == "1 KiB on gpu(0), 2 KiB on gpu(1)");
}

// Halves of an mlp on two devices.
struct Halves {
  std::unique_ptr<Runtime> runtime = test::NewFakeGpuRuntime();
  test::SmallNet net = test::SmallNets(runtime->operators())[0];
  Symbol symbol = test::InTurns(runtime->operators(), net.losses);

  executor::BindRequest On(Context first, Context second) const {
    executor::BindRequest request = test::RequestFor(net, symbol);
    request.ctx = first;
    request.group2ctx = {{"a", first}, {"b", second}};
    return request;
  }
  MemoryBytes Bytes(const executor::BindRequest& request) const {
    return TrainingBytes(*runtime, symbol, request, {.of_optimizer = 1});
  }
};

TEST_CASE("GPUs have a memory each, CPU devices share one") {
  const Halves halves;
  const executor::BindRequest request = halves.On(kFirst, kSecond);
  const MemoryBytes bytes = halves.Bytes(request);
  const executor::ExecGraph graph =
      executor::RunPasses(halves.symbol.graph(), request, *halves.runtime);
  const auto outside = BytesOutsideArenas(graph, request, {.of_optimizer = 1});
  const auto arenas = executor::PlanMemory(graph, request, executor::Strategy::kFull).arenas;
  REQUIRE(arenas.size() == 2);
  CHECK(bytes.size() == 2);
  for (const executor::ArenaPlan& arena : arenas)
    CHECK(bytes.at(arena.ctx) == arena.bytes + outside.at(arena.ctx).Sum());

  const MemoryBytes on_host = halves.Bytes(halves.On(Context::cpu(), Context::cpu(1)));
  CHECK(on_host.size() == 1);
  CHECK(on_host.at(Context::cpu()) > 0);
}

}  // namespace
}  // namespace mxtrain::session
