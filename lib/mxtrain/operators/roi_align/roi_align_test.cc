// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct Setup {
  TShape data;
  Values rois;
  int64_t rows, columns;
  double scale = 1;
  int samples = -1;
  bool aligned = false;
};

// An image [height, width] at a position, as the paper's authors sample it.
double SampleOf(const double* image, int64_t height, int64_t width, double y, double x) {
  const double bottom = static_cast<double>(height), right = static_cast<double>(width);
  if (y < -1 || y > bottom || x < -1 || x > right) return 0;
  y = std::clamp(y, 0.0, bottom - 1);
  x = std::clamp(x, 0.0, right - 1);
  const auto first_row = static_cast<int64_t>(y), first_column = static_cast<int64_t>(x);
  double sum = 0;
  for (int64_t i = first_row; i < std::min(first_row + 2, height); ++i) {
    for (int64_t j = first_column; j < std::min(first_column + 2, width); ++j) {
      sum += image[i * width + j] * std::max(0.0, 1 - std::abs(y - static_cast<double>(i))) *
             std::max(0.0, 1 - std::abs(x - static_cast<double>(j)));
    }
  }
  return sum;
}

// Of sample s of `count` in a cell, in cells.
double Center(int64_t cell, int64_t s, double count) {
  return static_cast<double>(cell) + (static_cast<double>(s) + 0.5) / count;
}

Values Pooled(const Setup& s, const Values& data) {
  Values out;
  const double shift = s.aligned ? 0.5 : 0, least = s.aligned ? -HUGE_VAL : 1;
  for (size_t r = 0; r < s.rois.size() / 5; ++r) {
    const double* roi = s.rois.data() + r * 5;
    const double left = roi[1] * s.scale - shift, top = roi[2] * s.scale - shift;
    const double width = std::max(roi[3] * s.scale - shift - left, least),
                 height = std::max(roi[4] * s.scale - shift - top, least);
    const double cell_width = width / static_cast<double>(s.columns),
                 cell_height = height / static_cast<double>(s.rows);
    const double across = s.samples > 0 ? s.samples : std::ceil(cell_width),
                 down = s.samples > 0 ? s.samples : std::ceil(cell_height);
    for (int64_t c = 0; c < s.data[1]; ++c) {
      for (int64_t i = 0; i < s.rows; ++i) {
        for (int64_t j = 0; j < s.columns; ++j) {
          double sum = 0;
          for (int64_t v = 0; v < static_cast<int64_t>(down) && roi[0] >= 0; ++v) {
            for (int64_t u = 0; u < static_cast<int64_t>(across); ++u) {
              const int64_t plane = static_cast<int64_t>(roi[0]) * s.data[1] + c;
              sum += SampleOf(data.data() + plane * s.data[2] * s.data[3], s.data[2], s.data[3],
                              top + Center(i, v, down) * cell_height,
                              left + Center(j, u, across) * cell_width);
            }
          }
          out.push_back(sum / std::max(down * across, 1.0));
        }
      }
    }
  }
  return out;
}

OperatorCase RoiAlignCase(const std::string& name, const Setup& setup) {
  OperatorCase c;
  c.name = "ROIAlign " + name;
  c.op = "ROIAlign";
  c.kwargs = {{"pooled_size", TShape{setup.rows, setup.columns}.ToTuple()},
              {"spatial_scale", std::to_string(setup.scale)},
              {"sample_ratio", std::to_string(setup.samples)},
              {"aligned", setup.aligned ? "True" : "False"}};
  c.shapes = {setup.data, {static_cast<int64_t>(setup.rois.size()) / 5, 5}};
  c.inputs = {Uniform(-1, 1), setup.rois.empty() ? Constant(0) : Cycle(setup.rois)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Arrays{Pooled(setup, in[0])}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "means of samples, and sums over regions in the gradient"};
  return c;
}

const Values kRegions = {0, 0, 0, 7, 7, 1, 2.25, 3.5, 5, 6.75, 1, 4, 4, 4, 4, 0, 1, 0, 6, 2};

TEST_CASE("ROIAlign") {
  const TShape data{2, 3, 8, 7};
  RunCase(RoiAlignCase("about one sample per element",
                       {.data = data, .rois = kRegions, .rows = 2, .columns = 3}));
  RunCase(RoiAlignCase("aligned",
                       {.data = data, .rois = kRegions, .rows = 3, .columns = 2, .aligned = true}));
  RunCase(RoiAlignCase("two samples per axis",
                       {.data = data, .rois = kRegions, .rows = 2, .columns = 2, .samples = 2}));
  RunCase(RoiAlignCase("more cells than elements",
                       {.data = data, .rois = kRegions, .rows = 5, .columns = 9, .samples = 1}));
  RunCase(RoiAlignCase("scaled", {.data = {2, 2, 6, 5},
                                  .rois = {0, 0, 0, 20, 20, 1, 9, 3, 26, 22},
                                  .rows = 3,
                                  .columns = 3,
                                  .scale = 0.25}));
  RunCase(
      RoiAlignCase("partly outside", {.data = {1, 2, 5, 5},
                                      .rois = {0, 3, 3, 12, 12, 0, -6, -5, 2, 1, 0, 9, 9, 12, 12},
                                      .rows = 2,
                                      .columns = 3}));
  RunCase(RoiAlignCase("from the far to the near corner",
                       {.data = {1, 2, 5, 5}, .rois = {0, 4, 3, 1, 1}, .rows = 2, .columns = 2}));
  RunCase(RoiAlignCase("of no extent", {.data = {1, 2, 5, 5},
                                        .rois = {0, 4, 3, 1, 1, 0, 2, 2, 2, 2},
                                        .rows = 2,
                                        .columns = 2,
                                        .aligned = true}));
  RunCase(RoiAlignCase("one element",
                       {.data = {1, 1, 1, 1}, .rois = {0, 0, 0, 1, 1}, .rows = 1, .columns = 1}));
  RunCase(RoiAlignCase("no region", {.data = {1, 2, 3, 3}, .rois = {}, .rows = 2, .columns = 2}));
}

TEST_CASE("ROIAlign: a region of a negative image is ignored") {
  RunCase(RoiAlignCase("none", {.data = {2, 3, 8, 7},
                                .rois = {-1, 0, 0, 7, 7, 1, 2.25, 3.5, 5, 6.75},
                                .rows = 2,
                                .columns = 2}));
}

TEST_CASE("ROIAlign: regions for several threads") {
  Setup setup{.data = {6, 31, 9, 8}, .rois = {}, .rows = 3, .columns = 3};
  for (int r = 0; r < 30; ++r) {
    const double at = r % 5, far = 5 + r % 3;
    setup.rois.insert(setup.rois.end(), {static_cast<double>(r % 6), at, at / 2, far, far + 1});
  }
  OperatorCase c = RoiAlignCase("many", setup);
  c.types = {DType::kFloat32};
  RunCase(c);
}

TEST_CASE("ROIAlign: a region far beyond the map") {
  OperatorCase c = RoiAlignCase("far", {.data = {1, 1, 4, 4},
                                        .rois = {0, -1e30, -1e9, 1e30, 1e9, 0, 3e38, 0, 3e38, 4},
                                        .rows = 3,
                                        .columns = 3});
  c.inputs[0] = Constant(1);
  c.forward = nullptr;
  c.types = {DType::kFloat32};
  c.check = [](const CaseResult& result) {
    std::vector<std::string> problems;
    for (const double v : result.out[0]) {
      if (!(v >= 0 && v <= 1)) problems.push_back("a mean of ones is " + std::to_string(v));
    }
    return problems;
  };
  RunCase(c);
}

TEST_CASE("ROIAlign: invalid regions and parameters") {
  OperatorCase c = RoiAlignCase(
      "image 2 of 2", {.data = {2, 1, 4, 4}, .rois = {2, 0, 0, 3, 3}, .rows = 2, .columns = 2});
  c.forward = nullptr;
  c.check = [](const CaseResult&) { return std::vector<std::string>(); };
  CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                       "ROIAlign: region 0 refers to image 2, but the batch has 2", Error);
  Kwargs kwargs = {{"pooled_size", "(2, 2)"}, {"spatial_scale", "1"}};
  const auto property = TestRegistry().Create("ROIAlign", kwargs);
  std::vector<TShape> in = {TShape{2, 1, 4, 4}, TShape{}}, out = {TShape{3, -1, -1, -1}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{3, 5});
  CHECK(out[0] == TShape{3, 1, 2, 2});
  in[1] = TShape{3, 4};
  CHECK_THROWS_WITH_AS(property->InferShape(&in, &out, &aux),
                       "ROIAlign: rois has shape [3, 4], but [?, 5] was expected", Error);
  kwargs.push_back({"position_sensitive", "True"});
  CHECK_THROWS_WITH_AS(TestRegistry().Create("ROIAlign", kwargs),
                       doctest::Contains("position_sensitive = True is not supported"), Error);
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("ROIAlign", {{"pooled_size", "(2,)"}, {"spatial_scale", "1"}}),
      doctest::Contains("expected two positive numbers, (h, w)"), Error);
}

}  // namespace
}  // namespace mxtrain::test
