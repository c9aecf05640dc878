// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Every pixel of the output from the four around its place, zero outside.
OperatorCase TransformerCase(const TShape& data, int64_t height, int64_t width) {
  OperatorCase c;
  c.name = format("SpatialTransformer {} to {} x {}", data.ToString(), height, width);
  c.op = "SpatialTransformer";
  c.kwargs = {{"target_shape", format("({}, {})", height, width)},
              {"transform_type", "affine"},
              {"sampler_type", "bilinear"}};
  c.shapes = {data, {data[0], 6}};
  // A small turn and shift; places between pixels.
  c.inputs = {Uniform(-1, 1), Cycle({0.81, -0.23, 0.107, 0.19, 0.93, -0.051, -0.62, 0.33, -0.2})};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t n = 0; n < data[0]; ++n) {
      const double* t = in[1].data() + n * 6;
      for (int64_t channel = 0; channel < data[1]; ++channel) {
        const double* image = in[0].data() + (n * data[1] + channel) * data[2] * data[3];
        for (int64_t i = 0; i < height; ++i) {
          for (int64_t j = 0; j < width; ++j) {
            const double v = -1 + 2.0 * static_cast<double>(i) / static_cast<double>(height - 1),
                         u = -1 + 2.0 * static_cast<double>(j) / static_cast<double>(width - 1);
            const double x = (t[0] * u + t[1] * v + t[2] + 1) * static_cast<double>(data[3] - 1) /
                             2,
                         y = (t[3] * u + t[4] * v + t[5] + 1) * static_cast<double>(data[2] - 1) /
                             2;
            double sum = 0;
            for (int64_t row = 0; row < data[2]; ++row) {
              for (int64_t column = 0; column < data[3]; ++column) {
                const double near_y = 1 - std::abs(y - static_cast<double>(row)),
                             near_x = 1 - std::abs(x - static_cast<double>(column));
                if (near_y > 0 && near_x > 0)
                  sum += near_y * near_x * image[row * data[3] + column];
              }
            }
            out.push_back(sum);
          }
        }
      }
    }
    return Arrays{out};
  };
  c.tolerance = {256, "places in the image are rounded, and multiply differences of pixels"};
  return c;
}

TEST_CASE("SpatialTransformer: an affine map of the pixels") {
  RunCase(TransformerCase({2, 3, 5, 7}, 5, 7));
  RunCase(TransformerCase({1, 2, 6, 4}, 3, 9));
  RunCase(TransformerCase({3, 1, 4, 4}, 2, 2));
}

TEST_CASE("SpatialTransformer: the identity, shapes and parameters") {
  OperatorCase c = TransformerCase({2, 2, 4, 5}, 4, 5);
  c.inputs[1] = Cycle({1, 0, 0, 0, 1, 0});
  c.backward = false;
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  RunCase(c);
  const Kwargs kwargs = {
      {"target_shape", "(8, 9)"}, {"transform_type", "affine"}, {"sampler_type", "bilinear"}};
  const auto op = TestRegistry().Create("SpatialTransformer", kwargs);
  std::vector<TShape> in{{4, 3, 5, 6}, TShape()}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{4, 6});
  CHECK(out[0] == TShape{4, 3, 8, 9});
  const auto unsized = TestRegistry().Create(
      "SpatialTransformer", {{"transform_type", "affine"}, {"sampler_type", "bilinear"}});
  CHECK_THROWS_WITH_AS(unsized->InferShape(&in, &out, &aux),
                       doctest::Contains("target_shape = (0, 0): give the two sizes"), Error);
}

}  // namespace
}  // namespace mxtrain::test
