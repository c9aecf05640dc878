// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase ImageNormalizeCase(const TShape& data, const Values& mean, const Values& std) {
  OperatorCase c;
  c.op = "image_normalize";
  c.name = format("image_normalize of {}", data.ToString());
  c.kwargs = {{"mean", params::Print(mean)}, {"std", params::Print(std)}};
  c.shapes = {data};
  Values bytes(256);
  for (size_t v = 0; v < bytes.size(); ++v) bytes[v] = static_cast<double>(v * 37 % 256);
  c.inputs = {Cycle(bytes)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    const auto plane = static_cast<size_t>(data[1] * data[2]),
               channels = static_cast<size_t>(data[3]);
    Values y(in[0].size());
    for (size_t at = 0; at < y.size(); ++at) {  // of [N, C, H, W]
      const size_t n = at / (channels * plane), k = at / plane % channels, pixel = at % plane;
      const double value = in[0][(n * plane + pixel) * channels + k];
      y[at] = (value / 255 - mean[mean.size() == 1 ? 0 : k]) / std[std.size() == 1 ? 0 : k];
    }
    return Arrays{y};
  };
  c.types = {DType::kUint8};
  c.backward = false;
  c.tolerance = {4, "scale and offset are rounded once each, and so is the result"};
  return c;
}

TEST_CASE("image_normalize") {
  RunCase(ImageNormalizeCase({2, 5, 7, 3}, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225}));
  RunCase(ImageNormalizeCase({3, 16, 17, 3}, {0}, {1}));
  RunCase(ImageNormalizeCase({2, 9, 4, 1}, {0.1307}, {0.3081}));
  RunCase(ImageNormalizeCase({1, 3, 2, 4}, {0.5}, {0.25}));
  RunCase(ImageNormalizeCase({1, 300, 70, 3}, {0.2, 0.3, 0.4}, {0.5}));
  RunCase(ImageNormalizeCase({0, 4, 4, 3}, {0}, {1}));
}

// On a GPU channels last.
TEST_CASE("image_normalize: 16-bit outputs") {
  for (const char* dtype : {"bfloat16", "float16"}) {
    OperatorCase c = ImageNormalizeCase({2, 5, 7, 3}, {0.485, 0.456, 0.406}, {0.229, 0.224, 0.225});
    c.kwargs.emplace_back("dtype", dtype);
    RunCase(c);
  }
}

TEST_CASE("image_normalize: valid and invalid arguments") {
  const auto infer = [](const Kwargs& kwargs, std::vector<TShape> in,
                        std::vector<TShape> out = std::vector<TShape>(1)) {
    std::vector<TShape> aux;
    const bool complete =
        TestRegistry().Create("image_normalize", kwargs)->InferShape(&in, &out, &aux);
    CHECK(complete);
    return std::vector{in[0], out[0]};
  };
  CHECK(infer({}, {TShape{8, 4, 5, 3}})[1] == TShape{8, 3, 4, 5});
  CHECK(infer({}, {TShape()}, {TShape{8, 3, 4, 5}})[0] == TShape{8, 4, 5, 3});
  CHECK_THROWS_WITH(infer({}, {TShape{8, 4, 5}}),
                    "image_normalize: data must be [N, H, W, C], not [8, 4, 5]");
  CHECK_THROWS_WITH(infer({}, {TShape{8, 3, 4, 5}}),
                    "image_normalize: expected images with 1 to 4 channels on the last axis, but "
                    "data are [8, 3, 4, 5]");
  CHECK_THROWS_WITH(infer({{"mean", "[0.1, 0.2]"}}, {TShape{8, 4, 5, 3}}),
                    "image_normalize: mean has 2 numbers, but the images have 3 channels");
  CHECK_THROWS_WITH(infer({{"std", "0"}}, {TShape{8, 4, 5, 1}}),
                    "image_normalize: std = (0): expected positive numbers");
  std::vector<DType> bytes{DType::kUint8}, narrow{DType::kUnknown}, none;
  CHECK(TestRegistry()
            .Create("image_normalize", {{"dtype", "bfloat16"}})
            ->InferType(&bytes, &narrow, &none));
  CHECK(narrow[0] == DType::kBfloat16);
  CHECK_THROWS_WITH(TestRegistry()
                        .Create("image_normalize", {{"dtype", "uint8"}})
                        ->InferType(&bytes, &narrow, &none),
                    "image_normalize: dtype is uint8; use float32, float16 or bfloat16");
  std::vector<DType> in{DType::kFloat32}, out{DType::kUnknown}, aux;
  CHECK_THROWS_WITH(TestRegistry().Create("image_normalize", {})->InferType(&in, &out, &aux),
                    "image_normalize: data is float32, but uint8 was expected");
}

}  // namespace
}  // namespace mxtrain::test
