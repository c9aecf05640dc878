// SPDX-License-Identifier: Apache-2.0
// The arithmetic of GPU reorders, run on the host and compared with the CPU's; and the answers of a
// machine without a GPU.
#include "mxtrain/device/cuda/internal/place_map.h"

#include <doctest/doctest.h>

#include <vector>

#include "mxtrain/base/error.h"
#include "mxtrain/device/backend.h"
#include "mxtrain/device/blocked_layout.h"

namespace mxtrain::cuda {
namespace {

std::vector<float> Reordered(const TensorSpec& from, const std::vector<float>& source,
                             const TensorSpec& to) {
  const PlaceMap from_map(from), to_map(to);
  std::vector<float> target(static_cast<size_t>(to_map.size()), -1);
  for (int64_t place = 0; place < to_map.size(); ++place) {
    int64_t index[TShape::kMaxDims];
    target[static_cast<size_t>(place)] =
        to_map.IndexAt(place, index) ? source[static_cast<size_t>(from_map.PlaceOf(index))] : 0;
  }
  return target;
}

TEST_CASE("offsets of every pair of layouts match the CPU's") {
  const auto cpu = NewCpuBackend(1);
  std::vector<Layout> layouts = {Layout()};
  for (const char* name : {"acdb", "bacd", "aBcd8b", "aBcd16b", "ABcd8b8a", "ABcd4a2b4a"})
    layouts.push_back(cpu->Intern(BlockedLayout::FromName(name)));
  for (const TShape& shape :
       {TShape{2, 11, 3, 5}, TShape{9, 8, 1, 2}, TShape{1, 1, 1, 1}, TShape{3, 0, 2, 2}}) {
    for (const Layout from : layouts) {
      for (const Layout to : layouts) {
        CAPTURE(shape.ToString());
        CAPTURE(from.Name());
        CAPTURE(to.Name());
        const TensorSpec plain{shape, DType::kFloat32, Layout()}, a{shape, DType::kFloat32, from},
            b{shape, DType::kFloat32, to};
        std::vector<float> numbers(static_cast<size_t>(shape.Size()));
        for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i + 1);
        std::vector<float> source(static_cast<size_t>(a.Bytes() / 4)),
            expected(static_cast<size_t>(b.Bytes() / 4));
        cpu->Reorder({}, plain, numbers.data(), a, source.data());
        cpu->Reorder({}, a, source.data(), b, expected.data());
        CHECK(Reordered(a, source, b) == expected);
      }
    }
  }
}

TEST_CASE("the CUDA backend loads; without a device it says why and what to do") {
  const auto gpu = NewGpuBackend();
  if (gpu->DeviceCount() > 0) return;
  CHECK(gpu->WhyAbsent().find("NVIDIA") != std::string::npos);
  CHECK(gpu->WhyAbsent().ends_with("--device cpu"));
  CHECK(gpu->Versions().size() == 5);
  CHECK_THROWS_WITH_AS(CheckDevice(*gpu, Context::gpu(0)),
                       doctest::Contains("gpu(0) is not available: "), Error);
  CHECK_THROWS_AS(gpu->NewStream(Context::gpu(0), 0), Error);
}

}  // namespace
}  // namespace mxtrain::cuda
