// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

double Regular(double index, int64_t length) {
  return -1 + 2 * index / static_cast<double>(std::max<int64_t>(length - 1, 1));
}

OperatorCase Affine(int64_t images, int64_t height, int64_t width) {
  OperatorCase c;
  c.name = "GridGenerator affine " + TShape{images, height, width}.ToString();
  c.op = "GridGenerator";
  c.kwargs = {{"transform_type", "affine"}, {"target_shape", TShape{height, width}.ToTuple()}};
  c.shapes = {{images, 6}};
  c.inputs = {Uniform(-1, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t coordinate = 0; coordinate < 2; ++coordinate) {
        const double* theta = in[0].data() + n * 6 + coordinate * 3;
        for (int64_t i = 0; i < height; ++i) {
          for (int64_t j = 0; j < width; ++j) {
            out.push_back(theta[0] * Regular(static_cast<double>(j), width) +
                          theta[1] * Regular(static_cast<double>(i), height) + theta[2]);
          }
        }
      }
    }
    return Arrays{out};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "three products"};
  return c;
}

OperatorCase Warp(const TShape& shape) {
  OperatorCase c;
  c.name = "GridGenerator warp " + shape.ToString();
  c.op = "GridGenerator";
  c.kwargs = {{"transform_type", "warp"}};
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (int64_t at = 0; at < shape.Size(); ++at) {
      const int64_t column = at % shape[3], row = at / shape[3] % shape[2];
      const bool x = at / (shape[2] * shape[3]) % 2 == 0;
      out.push_back(Regular(in[0][static_cast<size_t>(at)] + static_cast<double>(x ? column : row),
                            x ? shape[3] : shape[2]));
    }
    return Arrays{out};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "a sum and a quotient"};
  return c;
}

TEST_CASE("GridGenerator: affine") {
  RunCase(Affine(2, 4, 5));
  RunCase(Affine(1, 1, 3));
  RunCase(Affine(3, 2, 1));
  RunCase(Affine(0, 2, 2));
  RunCase(Affine(7, 50, 61));
}

TEST_CASE("GridGenerator: warp") {
  RunCase(Warp({2, 2, 4, 5}));
  RunCase(Warp({1, 2, 1, 3}));
  RunCase(Warp({1, 2, 3, 1}));
  RunCase(Warp({1, 2, 0, 3}));
  RunCase(Warp({3, 2, 70, 60}));
}

TEST_CASE("GridGenerator: invalid shapes") {
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("GridGenerator", {{"transform_type", "affine"}}),
      "GridGenerator: target_shape = (0, 0): affine needs two positive numbers, (h, w)", Error);
  const auto property = TestRegistry().Create("GridGenerator", {{"transform_type", "warp"}});
  std::vector<TShape> in = {TShape{2, 3, 4, 5}}, out(1), aux;
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       "GridGenerator: data has shape [2, 3, 4, 5], but [?, 2, ?, ?] was expected",
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
