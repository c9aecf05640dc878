// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Every element of the data times its weight: a hat of width 1 around it along each axis.
Values Sampled(const Values& data, const TShape& shape, const Values& grid, int64_t places) {
  const auto hat = [](double distance) { return std::max(0.0, 1 - std::abs(distance)); };
  Values out;
  for (int64_t n = 0; n < shape[0]; ++n) {
    for (int64_t c = 0; c < shape[1]; ++c) {
      for (int64_t place = 0; place < places; ++place) {
        const double x = (grid[static_cast<size_t>(2 * n * places + place)] + 1) *
                         static_cast<double>(shape[3] - 1) / 2,
                     y = (grid[static_cast<size_t>((2 * n + 1) * places + place)] + 1) *
                         static_cast<double>(shape[2] - 1) / 2;
        double sum = 0;
        for (int64_t i = 0; i < shape[2]; ++i) {
          for (int64_t j = 0; j < shape[3]; ++j) {
            sum += data[static_cast<size_t>(((n * shape[1] + c) * shape[2] + i) * shape[3] + j)] *
                   hat(y - static_cast<double>(i)) * hat(x - static_cast<double>(j));
          }
        }
        out.push_back(sum);
      }
    }
  }
  return out;
}

OperatorCase SamplerCase(const std::string& name, const TShape& data, int64_t height, int64_t width,
                         Generator grid) {
  OperatorCase c;
  c.name = "BilinearSampler " + name;
  c.op = "BilinearSampler";
  c.shapes = {data, {data[0], 2, height, width}};
  c.inputs = {Uniform(-1, 1), std::move(grid)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Sampled(in[0], data, in[1], height * width)};
  };
  c.tolerance = {128, "positions within the image, and sums over channels"};
  return c;
}

// Places away from elements, where the slope changes: with `cells` + 1 elements along an axis they
// are at multiples of 2 / cells.
Generator Between(double low, double high, int64_t cells) {
  std::vector<double> kinks;
  for (int64_t i = -2 * cells; i <= 3 * cells; ++i)
    kinks.push_back(-1 + 2 * static_cast<double>(i) / static_cast<double>(cells));
  return UniformAwayFrom(low, high, kinks);
}

TEST_CASE("BilinearSampler") {
  RunCase(SamplerCase("inside", {2, 3, 5, 5}, 4, 3, Between(-0.9, 0.9, 4)));
  RunCase(SamplerCase("partly outside", {2, 9, 4, 4}, 3, 5, Between(-2.5, 2.5, 3)));
  RunCase(SamplerCase("sides that differ", {1, 2, 3, 5}, 6, 2, Between(-1.4, 1.4, 4)));
  RunCase(SamplerCase("places of one image", {3, 1, 3, 3}, 1, 1, Between(-1.2, 1.2, 2)));
  RunCase(SamplerCase("no image", {0, 2, 3, 3}, 2, 2, Uniform(-1, 1)));
  RunCase(SamplerCase("no place", {2, 2, 3, 3}, 0, 2, Uniform(-1, 1)));
}

TEST_CASE("BilinearSampler: narrow types") {
  // Positions that float16 and bfloat16 represent.
  OperatorCase c = SamplerCase("quarters", {1, 2, 5, 5}, 2, 3,
                               Cycle({-0.875, -0.125, 0.375, 0.625, 0.875, -0.375, 1.25, -1.125}));
  c.types = kAllFloatingTypes;
  RunCase(c);
}

TEST_CASE("BilinearSampler: places far outside") {
  OperatorCase c =
      SamplerCase("far", {1, 2, 3, 4}, 2, 2, Cycle({-30, 1e30, HUGE_VAL, -HUGE_VAL, 7}));
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{Values(8, 0.0)}; };
  c.gradient = [](const Arrays&, const Arrays&, const Arrays&) {
    return Arrays{Values(24, 0.0), Values(8, 0.0)};
  };
  RunCase(c);
}

TEST_CASE("BilinearSampler: many places") {
  OperatorCase c = SamplerCase("many", {10, 10, 3, 3}, 16, 22, Between(-1.3, 1.3, 2));
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("BilinearSampler: an infinite element beside a place") {
  OperatorCase c = SamplerCase("infinite", {1, 1, 3, 3}, 1, 3, Cycle({-1, 0, 0, 0, 0, 1}));
  const double infinity = std::numeric_limits<double>::infinity();
  // At rows 1, 1 and 2, and at columns 0, 1 and 1.
  c.inputs[0] = Cycle({1, infinity, 2, 3, 4, infinity, 5, 6, -infinity});
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{3, 4, 6}}; };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BilinearSampler: a place that is NaN gives NaN") {
  OperatorCase c = SamplerCase("NaN", {1, 1, 2, 2}, 1, 1, Cycle({std::nan("")}));
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{std::nan("")}}; };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BilinearSampler: shapes") {
  const auto property = TestRegistry().Create("BilinearSampler", {});
  std::vector<TShape> in = {TShape{2, 3, 4, 5}, TShape{-1, 2, 6, -1}}, out = {{-1, -1, -1, 7}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 2, 6, 7});
  CHECK(out[0] == TShape{2, 3, 6, 7});
  in = {TShape{2, 3, 4, 5}, TShape{2, 3, 6, 7}};
  out = {TShape{}};
  CHECK_THROWS_WITH_AS(
      property->InferShape(&in, &out, &aux),
      "BilinearSampler: grid has shape [2, 3, 6, 7], but [2, 2, ?, ?] was expected", Error);
}

}  // namespace
}  // namespace mxtrain::test
