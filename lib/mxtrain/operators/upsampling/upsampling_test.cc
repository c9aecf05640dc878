// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <limits>
#include <string>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

int64_t IndexAt(const TShape& shape, int64_t n, int64_t c, int64_t y, int64_t x) {
  return ((n * shape[1] + c) * shape[2] + y) * shape[3] + x;
}

// Every element of the output is looked up in the input that it comes from, or in all of them.
OperatorCase Nearest(const std::vector<TShape>& shapes, int64_t scale, bool sums = false) {
  OperatorCase c;
  c.name = "UpSampling nearest";
  for (const TShape& shape : shapes) c.name += " " + shape.ToString();
  c.op = "UpSampling";
  c.kwargs = {{"scale", std::to_string(scale)},
              {"sample_type", "nearest"},
              {"num_args", std::to_string(shapes.size())},
              {"multi_input_mode", sums ? "sum" : "concat"}};
  c.shapes = shapes;
  c.inputs = {Uniform(-2, 2)};
  TShape out = shapes[0];
  out[2] *= scale;
  out[3] *= scale;
  for (size_t i = 1; i < shapes.size() && !sums; ++i) out[1] += shapes[i][1];
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result(static_cast<size_t>(out.Size()));
    for (int64_t n = 0; n < out[0]; ++n) {
      int64_t first = 0;
      for (size_t i = 0; i < shapes.size(); ++i) {
        for (int64_t channel = 0; channel < shapes[i][1]; ++channel) {
          for (int64_t y = 0; y < out[2]; ++y) {
            for (int64_t x = 0; x < out[3]; ++x) {
              result[IndexAt(out, n, first + channel, y, x)] += in[i][IndexAt(
                  shapes[i], n, channel, y * shapes[i][2] / out[2], x * shapes[i][3] / out[3])];
            }
          }
        }
        if (!sums) first += shapes[i][1];
      }
    }
    return Arrays{result};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {16, "a copy, and a sum of a block in the gradient"};
  return c;
}

TEST_CASE("UpSampling: nearest") {
  RunCase(Nearest({{2, 3, 4, 5}}, 2));
  RunCase(Nearest({{1, 2, 3, 17}}, 2));
  RunCase(Nearest({{1, 9, 3, 2}}, 3));
  RunCase(Nearest({{1, 2, 3, 5}}, 1));
  RunCase(Nearest({{1, 1, 1, 1}}, 9));
  RunCase(Nearest({{0, 2, 3, 4}}, 2));
  RunCase(Nearest({{2, 3, 0, 4}}, 2));
}

TEST_CASE("UpSampling: nearest with several inputs") {
  RunCase(Nearest({{2, 3, 4, 6}, {2, 1, 2, 3}, {2, 2, 8, 12}}, 2));
  RunCase(Nearest({{2, 3, 4, 6}, {2, 3, 2, 3}, {2, 3, 8, 12}}, 2, true));
  // Factors that differ along the axes.
  RunCase(Nearest({{1, 2, 3, 4}, {1, 2, 2, 8}}, 2));
}

TEST_CASE("UpSampling: nearest, rows for several threads") {
  OperatorCase c = Nearest({{2, 5, 30, 35}}, 2);
  c.types = {DType::kFloat32};
  RunCase(c);
}

// The transposed convolution from its definition: every element of the data is added, times the
// kernel, where the kernel lies.
OperatorCase Bilinear(const TShape& data, int64_t scale) {
  OperatorCase c;
  c.name = "UpSampling bilinear " + data.ToString() + ", scale " + std::to_string(scale);
  c.op = "UpSampling";
  c.kwargs = {{"scale", std::to_string(scale)}, {"sample_type", "bilinear"}, {"num_args", "2"}};
  const int64_t kernel = 2 * scale - scale % 2, pad = scale / 2;
  c.shapes = {data, {data[1], 1, kernel, kernel}};
  c.inputs = {Uniform(-1, 1)};
  const TShape out{data[0], data[1], data[2] * scale, data[3] * scale};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values result(static_cast<size_t>(out.Size()));
    for (int64_t n = 0; n < data[0]; ++n) {
      for (int64_t channel = 0; channel < data[1]; ++channel) {
        for (int64_t i = 0; i < data[2]; ++i) {
          for (int64_t j = 0; j < data[3]; ++j) {
            for (int64_t v = 0; v < kernel; ++v) {
              for (int64_t u = 0; u < kernel; ++u) {
                const int64_t y = i * scale - pad + v, x = j * scale - pad + u;
                if (y < 0 || x < 0 || y >= out[2] || x >= out[3]) continue;
                result[IndexAt(out, n, channel, y, x)] +=
                    in[0][IndexAt(data, n, channel, i, j)] *
                    in[1][(channel * kernel + v) * kernel + u];
              }
            }
          }
        }
      }
    }
    return Arrays{result};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "sums over images in the gradient of the weight"};
  return c;
}

TEST_CASE("UpSampling: bilinear") {
  RunCase(Bilinear({2, 3, 4, 5}, 2));
  RunCase(Bilinear({1, 2, 3, 4}, 3));
  RunCase(Bilinear({2, 1, 2, 3}, 4));
  RunCase(Bilinear({1, 2, 2, 2}, 5));
  RunCase(Bilinear({2, 3, 3, 2}, 1));
  RunCase(Bilinear({1, 1, 1, 1}, 2));
  RunCase(Bilinear({0, 3, 2, 2}, 2));
}

TEST_CASE("UpSampling: bilinear, an infinite element reaches its window and nothing else") {
  for (const int64_t scale : {2, 3, 4, 5}) {
    OperatorCase c = Bilinear({1, 2, 3, 4}, scale);
    c.inputs = {Cycle({1, std::numeric_limits<double>::infinity(), -2, 0.5, 3}), Uniform(0.5, 1)};
    c.backward = false;
    RunCase(c);
  }
}

TEST_CASE("UpSampling: bilinear, planes for several threads") {
  OperatorCase c = Bilinear({4, 3, 33, 37}, 2);
  c.types = {DType::kFloat32};
  c.tolerance = {512, "sums of thousands of products"};
  RunCase(c);
}

TEST_CASE("UpSampling: shapes") {
  const auto infer = [](Kwargs kwargs, std::vector<TShape> in, TShape out = {}) {
    const auto property = TestRegistry().Create("UpSampling", kwargs);
    std::vector<TShape> outs = {out}, aux;
    const bool known = property->InferShape(&in, &outs, &aux);
    in.push_back(outs[0]);
    in.push_back(TShape{known});
    return in;
  };
  using Shapes = std::vector<TShape>;
  const Kwargs one = {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "1"}},
               two = {{"scale", "2"}, {"sample_type", "nearest"}, {"num_args", "2"}},
               sum = {{"scale", "2"},
                      {"sample_type", "nearest"},
                      {"num_args", "2"},
                      {"multi_input_mode", "sum"}},
               bilinear = {{"scale", "3"}, {"sample_type", "bilinear"}, {"num_args", "1"}};
  CHECK(infer(one, {TShape{}}, {1, 3, 4, 6}) == Shapes{{1, 3, 2, 3}, {1, 3, 4, 6}, TShape{1}});
  CHECK(infer(two, {{-1, 3, 2, 3}, {5, 2, 1, 6}}) ==
        Shapes{{5, 3, 2, 3}, {5, 2, 1, 6}, {5, 5, 4, 6}, TShape{1}});
  CHECK(infer(two, {{5, 3, 2, 3}, {5, -1, 1, 6}}).back() == TShape{0});
  CHECK(infer(sum, {{1, -1, 2, 3}, {1, 7, 4, 6}}) ==
        Shapes{{1, 7, 2, 3}, {1, 7, 4, 6}, {1, 7, 4, 6}, TShape{1}});
  CHECK(infer(bilinear, {{2, 4, 5, 6}, TShape{}}) ==
        Shapes{{2, 4, 5, 6}, {4, 1, 5, 5}, {2, 4, 15, 18}, TShape{1}});
  CHECK_THROWS_WITH_AS(infer(one, {{3, 4}}), "UpSampling: arg0 [3, 4] must be images [N, C, H, W]",
                       Error);
  CHECK_THROWS_WITH_AS(infer(two, {{1, 1, 2, 2}, {1, 1, 3, 2}}),
                       "UpSampling: arg1 [1, 1, 3, 2] cannot be enlarged to the output's length 4 "
                       "along axis 2; it must be a multiple of 3",
                       Error);
  CHECK_THROWS_WITH_AS(infer(sum, {{1, 1, 2, 2}, {1, 2, 2, 2}}),
                       doctest::Contains("arg1 has shape [1, 2, ?, ?], but [1, 1, ?, ?]"), Error);
  CHECK_THROWS_WITH_AS(infer(bilinear, {{2, 4, 5, 6}, {4, 1, 4, 4}}),
                       doctest::Contains("weight has shape [4, 1, 4, 4], but [4, 1, 5, 5]"), Error);
  Kwargs filters = bilinear;
  filters.push_back({"num_filter", "3"});
  CHECK_THROWS_WITH_AS(infer(filters, {{2, 4, 5, 6}, TShape{}}),
                       "UpSampling: data [2, 4, 5, 6] have 4 channels, but num_filter = 3", Error);
}

TEST_CASE("UpSampling: parameters") {
  const auto property = TestRegistry().Create(
      "UpSampling", {{"scale", "2"}, {"sample_type", "bilinear"}, {"num_args", "1"}});
  CHECK(property->ListArguments() == std::vector<std::string>{"data", "weight"});
  CHECK(property->DefaultInit(1) == R"(["bilinear", {}])");
  CHECK(property->DefaultInit(0) == "");
  CHECK_THROWS_WITH_AS(TestRegistry().Create("UpSampling", {{"sample_type", "nearest"}}),
                       doctest::Contains("scale"), Error);
}

}  // namespace
}  // namespace mxtrain::test
