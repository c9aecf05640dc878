// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The windows in whole numbers: element i belongs to window o if it overlaps [o n / k, (o + 1) n /
// k), in units of 1 / k.
bool Covers(int64_t o, int64_t i, int64_t n, int64_t k) {
  return (i + 1) * k > o * n && i * k < (o + 1) * n;
}

OperatorCase AdaptivePoolingCase(const TShape& data, const std::string& output_size, int64_t height,
                                 int64_t width) {
  OperatorCase c;
  c.name = "AdaptiveAvgPooling2D of " + data.ToString() + " to " + output_size;
  c.op = "AdaptiveAvgPooling2D";
  if (!output_size.empty()) c.kwargs = {{"output_size", output_size}};
  c.shapes = {data};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t plane = 0; plane < data[0] * data[1]; ++plane) {
      for (int64_t y = 0; y < height; ++y) {
        for (int64_t x = 0; x < width; ++x) {
          double sum = 0, cells = 0;
          for (int64_t i = 0; i < data[2]; ++i) {
            if (!Covers(y, i, data[2], height)) continue;
            for (int64_t j = 0; j < data[3]; ++j) {
              if (!Covers(x, j, data[3], width)) continue;
              sum += in[0][static_cast<size_t>((plane * data[2] + i) * data[3] + j)];
              ++cells;
            }
          }
          out.push_back(sum / cells);
        }
      }
    }
    return Arrays{out};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "a mean over a window"};
  return c;
}

TEST_CASE("AdaptiveAvgPooling2D") {
  RunCase(AdaptivePoolingCase({2, 3, 7, 7}, "", 1, 1));
  RunCase(AdaptivePoolingCase({2, 3, 7, 5}, "()", 1, 1));
  RunCase(AdaptivePoolingCase({2, 3, 8, 6}, "2", 2, 2));
  RunCase(AdaptivePoolingCase({2, 3, 7, 5}, "(3, 2)", 3, 2));
  RunCase(AdaptivePoolingCase({1, 9, 5, 3}, "(2, 7)", 2, 7));
  RunCase(AdaptivePoolingCase({1, 2, 3, 5}, "(8, 4)", 8, 4));
  RunCase(AdaptivePoolingCase({1, 2, 4, 40}, "(3, 2)", 3, 2));
  RunCase(AdaptivePoolingCase({1, 1, 1, 1}, "3", 3, 3));
  RunCase(AdaptivePoolingCase({0, 3, 4, 4}, "2", 2, 2));
}

TEST_CASE("AdaptiveAvgPooling2D: rows for several threads") {
  OperatorCase c = AdaptivePoolingCase({2, 40, 20, 31}, "(6, 7)", 6, 7);
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("AdaptiveAvgPooling2D: invalid sizes") {
  for (const char* size : {"(2, 3, 4)", "0", "(3, -1)"}) {
    CHECK_THROWS_WITH_AS(
        TestRegistry().Create("AdaptiveAvgPooling2D", {{"output_size", size}}),
        doctest::Contains("expected (h, w), one number for both, or (); each from 1 to"), Error);
  }
  const auto property = TestRegistry().Create("AdaptiveAvgPooling2D", {{"output_size", "3"}});
  std::vector<TShape> in = {TShape{2, 3, 0, 4}}, out(1), aux;
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("axis 2 of data [2, 3, 0, 4] must have a length from 1"),
                       Error);
  in = {TShape{2, 3, 4}};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       doctest::Contains("data [2, 3, 4] must be images [N, C, H, W]"), Error);
}

}  // namespace
}  // namespace mxtrain::test
