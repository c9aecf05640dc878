// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct CorrelationNet {
  TShape data;
  int64_t kernel = 1, displacement = 1, stride1 = 1, stride2 = 1, pad = 0;
  bool multiply = true;
};

// The two images are padded first, and the patches cut out of them.
Values Correlate(const CorrelationNet& net, const Arrays& in) {
  const int64_t height = net.data[2] + 2 * net.pad, width = net.data[3] + 2 * net.pad;
  Arrays padded;
  for (const Values& data : in) {
    Values& image =
        padded.emplace_back(static_cast<size_t>(net.data[0] * net.data[1] * height * width));
    for (int64_t i = 0; i < net.data.Size(); ++i) {
      const int64_t x = i % net.data[3], y = i / net.data[3] % net.data[2],
                    plane = i / net.data[3] / net.data[2];
      image[static_cast<size_t>((plane * height + y + net.pad) * width + x + net.pad)] =
          data[static_cast<size_t>(i)];
    }
  }
  const int64_t reach = net.displacement / net.stride2 * net.stride2,
                border = net.displacement + net.kernel / 2;
  Values out;
  for (int64_t n = 0; n < net.data[0]; ++n) {
    for (int64_t dy = -reach; dy <= reach; dy += net.stride2) {
      for (int64_t dx = -reach; dx <= reach; dx += net.stride2) {
        for (int64_t y = border; y < height - border; y += net.stride1) {
          for (int64_t x = border; x < width - border; x += net.stride1) {
            double sum = 0;
            for (int64_t c = 0; c < net.data[1]; ++c) {
              for (int64_t h = -net.kernel / 2; h <= net.kernel / 2; ++h) {
                for (int64_t w = -net.kernel / 2; w <= net.kernel / 2; ++w) {
                  const int64_t plane = (n * net.data[1] + c) * height;
                  const double
                      a = padded[0][static_cast<size_t>((plane + y + h) * width + x + w)],
                      b = padded[1][static_cast<size_t>((plane + y + dy + h) * width + x + dx + w)];
                  sum += net.multiply ? a * b : std::abs(a - b);
                }
              }
            }
            out.push_back(sum / static_cast<double>(net.kernel * net.kernel * net.data[1]));
          }
        }
      }
    }
  }
  return out;
}

void RunCorrelation(const std::string& name, const CorrelationNet& net, bool both_signs = false) {
  OperatorCase c;
  c.name = "Correlation, " + name;
  c.op = "Correlation";
  c.kwargs = {{"kernel_size", std::to_string(net.kernel)},
              {"max_displacement", std::to_string(net.displacement)},
              {"stride1", std::to_string(net.stride1)},
              {"stride2", std::to_string(net.stride2)},
              {"pad_size", std::to_string(net.pad)},
              {"is_multiply", net.multiply ? "True" : "False"}};
  c.shapes = {net.data, net.data};
  // Numbers of one sign apiece: no kinks of their difference, nor against padding.
  c.inputs = {Uniform(0.2, 2), Uniform(-2, -0.2)};
  // Numbers of both signs, those of data2 the larger ones: differences have the sign of data2.
  if (both_signs) c.inputs = {UniformAwayFrom(-0.7, 0.7, {0}, 0.3), UniformAwayFrom(-2, 2, {0}, 1)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Arrays{Correlate(net, in)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "sums over patches and displacements"};
  RunCase(c);
}

TEST_CASE("Correlation: kernels, strides, padding, differences") {
  for (const bool multiply : {true, false}) {
    RunCorrelation("cells", {.data = {2, 3, 5, 4}, .pad = 1, .multiply = multiply});
    RunCorrelation("patches",
                   {.data = {1, 2, 7, 8}, .kernel = 3, .displacement = 2, .multiply = multiply});
    RunCorrelation("strides", {.data = {1, 3, 9, 10},
                               .kernel = 3,
                               .displacement = 3,
                               .stride1 = 2,
                               .stride2 = 2,
                               .pad = 3,
                               .multiply = multiply});
    RunCorrelation("no displacement",
                   {.data = {2, 2, 3, 3}, .displacement = 0, .multiply = multiply});
    RunCorrelation(
        "FlowNet's proportions",
        {.data = {1, 2, 6, 5}, .displacement = 4, .stride2 = 2, .pad = 4, .multiply = multiply});
  }
  RunCorrelation("no images", {.data = {0, 2, 5, 5}});
}

TEST_CASE("Correlation: differences of both signs") {
  RunCorrelation("signs of cells", {.data = {2, 3, 5, 4}, .pad = 1, .multiply = false}, true);
  RunCorrelation(
      "signs of patches",
      {.data = {1, 2, 7, 8}, .kernel = 3, .displacement = 2, .pad = 1, .multiply = false}, true);
  RunCorrelation("signs with strides",
                 {.data = {1, 3, 9, 10},
                  .kernel = 3,
                  .displacement = 3,
                  .stride1 = 2,
                  .stride2 = 2,
                  .pad = 3,
                  .multiply = false},
                 true);
}

TEST_CASE("Correlation: shapes and refusals") {
  const auto op =
      TestRegistry().Create("Correlation", {{"max_displacement", "2"}, {"pad_size", "2"}});
  std::vector<TShape> in{TShape(), {2, 3, 7, 9}}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3, 7, 9});
  CHECK(out[0] == TShape{2, 25, 7, 9});
  CHECK_THROWS_WITH_AS(TestRegistry().Create("Correlation", {{"kernel_size", "2"}}),
                       "Correlation: kernel_size = 2 must be odd", Error);
  const auto wide = TestRegistry().Create("Correlation", {{"max_displacement", "4"}});
  out = {TShape()};
  CHECK_THROWS_WITH_AS(wide->InferShape(&in, &out, &aux), doctest::Contains("use more padding"),
                       Error);
}

}  // namespace
}  // namespace mxtrain::test
