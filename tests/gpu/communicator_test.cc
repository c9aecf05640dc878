// SPDX-License-Identifier: Apache-2.0
// NCCL between all available GPUs: with one it is loaded and called, with several it sums.
#include <doctest/doctest.h>

#include "mxtrain/base/error.h"
#include "mxtrain/device/communicator.h"
#include "mxtrain/ndarray/ndarray.h"
#include "tests/gpu/runtime.h"

namespace mxtrain::test {
namespace {

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
    CHECK(std::string(e.what()).find("NCCL") != std::string::npos);
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

}  // namespace
}  // namespace mxtrain::test
