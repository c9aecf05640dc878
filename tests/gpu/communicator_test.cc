// SPDX-License-Identifier: Apache-2.0
// NCCL between all available GPUs: with one it is loaded and called, with several it sums.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/ndarray/ndarray.h"
#include "tests/gpu/runtime.h"
#include "tests/support/thread_ranks.h"

namespace mxtrain::test {
namespace {

// What a machine or a build without NCCL may say; everything else is a failure.
bool LacksNccl(const std::string& text) {
  return text.find("was built without NCCL") != std::string::npos ||
         text.find("need NCCL 2.14") != std::string::npos;
}

TEST_CASE("arrays of all GPUs are summed into each, for every gradient type") {
  const auto runtime = GpuRuntime();
  std::vector<Context> gpus;
  for (int id = 0; id < runtime->backend(Context::gpu()).DeviceCount(); ++id)
    gpus.push_back(Context::gpu(id));
  std::shared_ptr<Communicator> communicator;
  try {
    communicator = NewGpuCommunicator(gpus);
  } catch (const Error& e) {
    MESSAGE(e.what());
    REQUIRE(LacksNccl(e.what()));
    return;
  }
  MESSAGE("GPUs: " << gpus.size());
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16}) {
    for (const int64_t n : {1, 1000, 1 << 20}) {
      std::vector<NDArray> arrays;
      std::vector<void*> first_half, rest;
      std::vector<engine::VarHandle> writes;
      for (const Context gpu : gpus) {
        NDArray& array = arrays.emplace_back(*runtime, TShape{n}, type, gpu);
        array.Fill(gpu.id + 1);
        char* const data = array.data().dptr<char>();
        first_half.push_back(data);
        rest.push_back(data + n / 2 * SizeOf(type));
        writes.push_back(array.var());
      }
      for (int round = 0; round < 3; ++round) {
        runtime->engine().PushSync(
            [=](RunContext ctx) {
              const ArrayOnEach halves[] = {{type, first_half, n / 2}, {type, rest, n - n / 2}};
              communicator->AllReduce(ctx, halves);
            },
            {}, writes,
            {.ctx = gpus[0], .property = engine::FnProperty::kComm, .name = "all_reduce"});
      }
      const auto count = static_cast<float>(gpus.size());
      const float sum = count * (count + 1) / 2 * count * count;
      for (const NDArray& array : arrays)
        CHECK(array.ToVector() == std::vector<float>(static_cast<size_t>(n), sum));
    }
  }
}

// As many ranks as there are GPUs, also with one: NCCL begins otherwise than in one process.
TEST_CASE("GPUs of ranks, which are threads here, are summed into each") {
  const int ranks = GpuRuntime()->backend(Context::gpu()).DeviceCount();
  RunRanks(ranks, [ranks](const std::shared_ptr<ProcessGroup>& group) {
    const auto runtime = GpuRuntime();
    const Context gpu = Context::gpu(group->rank());
    std::shared_ptr<Communicator> communicator;
    try {
      communicator = NewGpuCommunicator({&gpu, 1}, group);
    } catch (const Error& e) {
      const std::string text = e.what();
      CHECK_MESSAGE(LacksNccl(text), text);
      return;
    }
    for (const int64_t n : {1, 1000, 1 << 20}) {
      NDArray array(*runtime, TShape{n}, DType::kFloat32, gpu);
      array.Fill(group->rank() + 1);
      const engine::VarHandle var = array.var();
      for (int round = 0; round < 3; ++round) {
        runtime->engine().PushSync(
            [communicator, array, n](RunContext ctx) {
              const ArrayOnEach all{DType::kFloat32, {array.data().data}, n};
              communicator->AllReduce(ctx, {&all, 1});
            },
            {}, {&var, 1},
            {.ctx = gpu, .property = engine::FnProperty::kComm, .name = "all_reduce"});
      }
      const auto count = static_cast<float>(ranks);
      const float sum = count * (count + 1) / 2 * count * count;
      CHECK(array.ToVector() == std::vector<float>(static_cast<size_t>(n), sum));
    }
  });
}

TEST_CASE("two ranks with the same GPU are refused by the GPU's number") {
  RunRanks(2, [](const std::shared_ptr<ProcessGroup>& group) {
    const auto runtime = GpuRuntime();
    const Context gpu = Context::gpu();
    std::string text;
    try {
      NewGpuCommunicator({&gpu, 1}, group);
    } catch (const Error& e) {
      text = e.what();
    }
    const bool refused = text.find("ranks 0 and 1 have the same GPU, GPU-") == 0;
    CHECK_MESSAGE((refused || LacksNccl(text)), text);
  });
}

}  // namespace
}  // namespace mxtrain::test
