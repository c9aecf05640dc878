// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The value of an image of height x width at a position, interpolated between four elements.
double ValueAt(const double* image, int64_t height, int64_t width, double y, double x) {
  const auto element = [&](double row, double column) {
    return image[static_cast<int64_t>(std::min(row, static_cast<double>(height - 1))) * width +
                 static_cast<int64_t>(std::min(column, static_cast<double>(width - 1)))];
  };
  const double top = std::floor(y), left = std::floor(x), down = y - top, right = x - left;
  return (1 - down) * ((1 - right) * element(top, left) + right * element(top, left + 1)) +
         down * ((1 - right) * element(top + 1, left) + right * element(top + 1, left + 1));
}

double PositionOf(int64_t o, int64_t in, int64_t out, bool align_corners) {
  const double at = static_cast<double>(o), n = static_cast<double>(in),
               target = static_cast<double>(out);
  if (!align_corners) return std::max((at + 0.5) * n / target - 0.5, 0.0);
  return out > 1 ? at * (n - 1) / (target - 1) : 0;
}

Values Resized(const Values& data, const TShape& shape, int64_t height, int64_t width,
               bool align_corners) {
  Values out;
  for (int64_t plane = 0; plane < shape[0] * shape[1]; ++plane) {
    for (int64_t y = 0; y < height; ++y) {
      for (int64_t x = 0; x < width; ++x) {
        out.push_back(ValueAt(data.data() + plane * shape[2] * shape[3], shape[2], shape[3],
                              PositionOf(y, shape[2], height, align_corners),
                              PositionOf(x, shape[3], width, align_corners)));
      }
    }
  }
  return out;
}

OperatorCase ResizeCase(const TShape& data, int64_t height, int64_t width, bool align_corners,
                        Kwargs kwargs) {
  OperatorCase c;
  c.name = "BilinearResize2D of " + data.ToString() + (align_corners ? ", corners aligned" : "");
  for (const auto& [key, value] : kwargs) c.name += format(", {} = {}", key, value);
  c.op = "BilinearResize2D";
  c.kwargs = std::move(kwargs);
  if (!align_corners) c.kwargs.push_back({"align_corners", "False"});
  c.shapes = {data};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{Resized(in[0], data, height, width, align_corners)};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "sums of a few products"};
  return c;
}

void RunSize(const TShape& data, int64_t height, int64_t width) {
  for (const bool align_corners : {true, false}) {
    RunCase(ResizeCase(data, height, width, align_corners,
                       {{"height", std::to_string(height)}, {"width", std::to_string(width)}}));
  }
}

TEST_CASE("BilinearResize2D") {
  RunSize({2, 3, 4, 5}, 8, 10);
  RunSize({2, 3, 5, 7}, 3, 4);
  RunSize({1, 2, 3, 7}, 5, 4);
  RunSize({1, 2, 7, 3}, 4, 11);
  RunSize({1, 1, 1, 1}, 3, 2);
  RunSize({1, 2, 3, 5}, 1, 1);
  RunSize({1, 9, 5, 4}, 5, 4);
  RunSize({0, 3, 4, 4}, 2, 2);
  RunSize({2, 0, 4, 4}, 2, 2);
  // Gradients with more taps than a vector loop takes.
  RunSize({1, 2, 2, 3}, 11, 40);
}

TEST_CASE("BilinearResize2D: rows for several threads") {
  OperatorCase c = ResizeCase({2, 3, 60, 50}, 90, 75, false, {{"height", "90"}, {"width", "75"}});
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("BilinearResize2D: sizes of the modes") {
  const auto run = [](const std::string& mode, int64_t height, int64_t width, Kwargs more = {}) {
    more.push_back({"mode", mode});
    OperatorCase c = ResizeCase({1, 2, 4, 7}, height, width, true, std::move(more));
    c.types = {DType::kFloat32};
    RunCase(c);
  };
  run("size", 6, 10, {{"scale_height", "1.5"}, {"scale_width", "1.5"}});
  run("size", 6, 3, {{"scale_height", "1.5"}, {"width", "3"}});
  run("odd_scale", 8, 13, {{"scale_height", "2"}, {"scale_width", "2"}});
  run("odd_scale", 2, 4, {{"scale_height", "0.5"}, {"scale_width", "0.5"}});
  run("to_even_down", 4, 6);
  run("to_even_up", 4, 8);
  run("to_odd_down", 3, 7);
  run("to_odd_up", 5, 7);
}

TEST_CASE("BilinearResize2D: the size of a second input") {
  OperatorCase c = ResizeCase({2, 3, 4, 5}, 6, 3, false, {{"mode", "like"}});
  c.shapes.push_back({1, 2, 6, 3});
  RunCase(c);
}

TEST_CASE("BilinearResize2D: what is not read may be infinite") {
  OperatorCase c = ResizeCase({1, 1, 3, 9}, 3, 5, true, {{"height", "3"}, {"width", "5"}});
  c.inputs = {Cycle({1, HUGE_VAL, 2, HUGE_VAL, 3, HUGE_VAL, 4, HUGE_VAL, 5})};
  c.forward = [](const Arrays&, const Arrays&) {
    return Arrays{{1, 2, 3, 4, 5, 1, 2, 3, 4, 5, 1, 2, 3, 4, 5}};
  };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("BilinearResize2D: shapes") {
  const auto infer = [](const Kwargs& kwargs, std::vector<TShape> in, TShape out = {}) {
    const auto property = TestRegistry().Create("BilinearResize2D", kwargs);
    std::vector<TShape> outs = {out}, aux;
    const bool known = property->InferShape(&in, &outs, &aux);
    in.push_back(outs[0]);
    in.push_back(TShape{known});
    return in;
  };
  using Shapes = std::vector<TShape>;
  CHECK(infer({{"height", "2"}, {"width", "1"}}, {{-1, 3, 4, 5}}, {7, -1, -1, -1}) ==
        Shapes{{7, 3, 4, 5}, {7, 3, 2, 1}, TShape{1}});
  CHECK(infer({{"mode", "like"}}, {{1, 3, 4, 5}, TShape{}}, {-1, -1, 2, -1}) ==
        Shapes{{1, 3, 4, 5}, {-1, -1, 2, -1}, {1, 3, 2, -1}, TShape{0}});
  CHECK_THROWS_WITH_AS(infer({{"height", "2"}, {"width", "1"}}, {{3, 4, 5}}),
                       doctest::Contains("data [3, 4, 5] must be images [N, C, H, W]"), Error);
  CHECK_THROWS_WITH_AS(
      infer({{"scale_height", "0.1"}, {"width", "1"}}, {{1, 3, 4, 5}}),
      "BilinearResize2D: axis 2 of data [1, 3, 4, 5] would have length 0 in the output; "
      "lengths from 1 to 16777216 can be resized",
      Error);
  CHECK_THROWS_WITH_AS(infer({{"height", "2"}, {"width", "1"}}, {{1, 3, 4, 0}}),
                       doctest::Contains("axis 3 of data [1, 3, 4, 0]"), Error);
  CHECK_THROWS_WITH_AS(infer({{"height", "2"}, {"scale_width", "1e30"}}, {{1, 3, 4, 5}}),
                       doctest::Contains("length 16777217"), Error);
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("BilinearResize2D", {{"mode", "odd_scale"}, {"scale_width", "2"}}),
      "BilinearResize2D: mode = odd_scale needs scale_height and scale_width", Error);
}

TEST_CASE("BilinearResize2D: a size is given for each axis") {
  const auto create = [](const Kwargs& kwargs) {
    return TestRegistry().Create("BilinearResize2D", kwargs);
  };
  CHECK_THROWS_WITH_AS(create({}), "BilinearResize2D: mode = size needs height or scale_height",
                       Error);
  CHECK_THROWS_WITH_AS(create({{"height", "2"}, {"scale_width", "None"}}),
                       "BilinearResize2D: mode = size needs width or scale_width", Error);
  // What a file of a net holds is read again.
  const auto one = create({{"height", "1"}, {"scale_width", "2"}});
  CHECK(create(one->GetParams())->GetParams() == one->GetParams());
  CHECK_NOTHROW(create({{"mode", "to_even_up"}}));
}

}  // namespace
}  // namespace mxtrain::test
