// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The reference rules in floating point: edges floor(i size / p) and ceil((i + 1) size / p),
// shifted by start and clipped.
Arrays Pool(const Arrays& in, const TShape& data, int64_t rois, int64_t h, int64_t w,
            double scale) {
  Arrays out(2);
  for (int64_t r = 0; r < rois; ++r) {
    const double* roi = in[1].data() + r * 5;
    const double x1 = std::round(roi[1] * scale), y1 = std::round(roi[2] * scale),
                 x2 = std::round(roi[3] * scale), y2 = std::round(roi[4] * scale);
    const double height = std::max(y2 - y1 + 1, 1.0), width = std::max(x2 - x1 + 1, 1.0);
    for (int64_t c = 0; c < data[1]; ++c) {
      for (int64_t i = 0; i < h; ++i) {
        for (int64_t j = 0; j < w; ++j) {
          const auto clip = [](double v, int64_t limit) {
            return std::min(std::max(v, 0.0), static_cast<double>(limit));
          };
          const double row = double(i), column = double(j), rows = double(h), columns = double(w);
          const double top = clip(std::floor(row * height / rows) + y1, data[2]),
                       bottom = clip(std::ceil((row + 1) * height / rows) + y1, data[2]);
          const double left = clip(std::floor(column * width / columns) + x1, data[3]),
                       right = clip(std::ceil((column + 1) * width / columns) + x1, data[3]);
          double best = 0, where = -1;
          if (roi[0] < 0) {
            out[0].push_back(0), out[1].push_back(-1);
            continue;
          }
          const int64_t plane = static_cast<int64_t>(roi[0]) * data[1] + c;
          for (int64_t y = int64_t(top); y < int64_t(bottom); ++y) {
            for (int64_t x = int64_t(left); x < int64_t(right); ++x) {
              const int64_t at = y * data[3] + x;
              const double v = in[0][static_cast<size_t>(plane * data[2] * data[3] + at)];
              if (where < 0 || v > best) {
                best = v;
                where = static_cast<double>(at);
              }
            }
          }
          out[0].push_back(best);
          out[1].push_back(where);
        }
      }
    }
  }
  return out;
}

OperatorCase RoiPoolingCase(const std::string& name, const TShape& data, const Values& rois,
                            int64_t h, int64_t w, const std::string& scale) {
  OperatorCase c;
  c.name = "ROIPooling " + name;
  c.op = "ROIPooling";
  c.kwargs = {{"pooled_size", TShape{h, w}.ToTuple()}, {"spatial_scale", scale}};
  const int64_t count = static_cast<int64_t>(rois.size()) / 5;
  c.shapes = {data, {count, 5}};
  c.inputs = {Distinct(-8, 8), Cycle(rois)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Pool(in, data, count, h, w, std::stod(scale));
  };
  // The head gradient goes to the maximum: exact, whereas central differences could move the
  // maximum.
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    const Arrays pooled = Pool(in, data, count, h, w, std::stod(scale));
    Values g(in[0].size(), 0.0);
    for (size_t k = 0; k < pooled[1].size(); ++k) {
      if (pooled[1][k] < 0) continue;
      const int64_t r = static_cast<int64_t>(k) / (data[1] * h * w),
                    channel = static_cast<int64_t>(k) / (h * w) % data[1];
      const int64_t plane = static_cast<int64_t>(in[1][r * 5]) * data[1] + channel;
      g[static_cast<size_t>(plane * data[2] * data[3] + static_cast<int64_t>(pooled[1][k]))] +=
          head[0][k];
    }
    return Arrays{g, {}};
  };
  c.types = {DType::kFloat32, DType::kFloat64, DType::kFloat16};
  c.tolerance = {16, "sums of few head gradients"};
  return c;
}

TEST_CASE("ROIPooling") {
  const Values rois = {0, 0, 0, 7, 7, 1, 2, 3, 5, 6, 1, 4, 4, 4, 4, 0, 1, 0, 6, 2};
  RunCase(RoiPoolingCase("whole pixels", {2, 3, 8, 8}, rois, 2, 2, "1"));
  RunCase(RoiPoolingCase("more cells than pixels", {2, 3, 8, 8}, rois, 3, 5, "1"));
  RunCase(RoiPoolingCase("scaled", {2, 2, 6, 7}, {0, 0, 0, 20, 20, 1, 9, 3, 26, 22}, 3, 3, "0.25"));
  RunCase(RoiPoolingCase("outside of the map", {1, 2, 5, 5},
                         {0, 3, 3, 12, 12, 0, -6, -6, -3, -3, 0, 4, 4, 1, 1}, 2, 2, "1"));
  RunCase(RoiPoolingCase("one cell", {1, 1, 1, 1}, {0, 0, 0, 0, 0}, 1, 1, "1"));
}

TEST_CASE("ROIPooling: a region of a negative image is ignored") {
  RunCase(RoiPoolingCase("none", {2, 3, 8, 8}, {-1, 0, 0, 7, 7, 1, 2, 3, 5, 6, -2, 4, 4, 4, 4}, 2,
                         2, "1"));
}

TEST_CASE("ROIPooling: numbers beyond every map") {
  RunCase(RoiPoolingCase(
      "far", {1, 1, 5, 5},
      {0, -1e30, -1e30, 1e30, 1e30, 0, 3e38, 0, 3e38, 4, 0, -1e9, 0, 2, 4, 0, 2, 1e19, 4, -1e19}, 5,
      5, "1"));
}

TEST_CASE("ROIPooling: a NaN in a cell is its maximum") {
  OperatorCase c = RoiPoolingCase("NaN", {1, 2, 4, 4}, {0, 0, 0, 3, 3}, 2, 2, "1");
  const double nan = std::nan("");
  c.inputs[0] = Cycle({1, 2, 3, 4, nan, 6, 7, 8, 9, 10, 11, 12, 13, 14, nan});
  c.forward = [=](const Arrays&, const Arrays&) {
    return Arrays{{nan, 8, 14, nan, 7, nan, nan, 13}, {4, 7, 13, 14, 5, 3, 13, 11}};
  };
  c.gradient = nullptr;
  c.backward = false;
  RunCase(c);
}

TEST_CASE("ROIPooling: invalid regions") {
  CHECK_THROWS_WITH_AS(
      TestRegistry().Create("ROIPooling", {{"pooled_size", "(2,)"}, {"spatial_scale", "1"}}),
      doctest::Contains("(h, w)"), Error);
  CHECK_THROWS_AS(
      TestRegistry().Create("ROIPooling", {{"pooled_size", "(2,2)"}, {"spatial_scale", "0"}}),
      Error);
  // A region with an image beyond the batch, on the CPU; the reference above is not called.
  OperatorCase c = RoiPoolingCase("image 2 of 2", {2, 1, 4, 4}, {2, 0, 0, 3, 3}, 2, 2, "1");
  c.check = [](const CaseResult&) { return std::vector<std::string>(); };
  CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                       "ROIPooling: region 0 refers to image 2, but the batch has 2", Error);
  // A non-finite number.
  c = RoiPoolingCase("not finite", {2, 1, 4, 4}, {0, 0, 0, 3, 3, 0, 0, std::nan(""), 3, 3}, 2, 2,
                     "1");
  c.check = [](const CaseResult&) { return std::vector<std::string>(); };
  CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                       doctest::Contains("region 1 is (0, 0, nan, 3, 3); expected finite numbers"),
                       Error);
  c.inputs[1] = Cycle({0, 0, 0, 3, HUGE_VAL, HUGE_VAL, 0, 0, 3, 3});
  CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                       doctest::Contains("region 0 is (0, 0, 0, 3, inf)"), Error);
}

TEST_CASE("ROIPooling: shapes") {
  const auto property =
      TestRegistry().Create("ROIPooling", {{"pooled_size", "(2,2)"}, {"spatial_scale", "1"}});
  std::vector<TShape> in = {TShape{2, 1, 4, 4}, TShape{}}, out = {TShape{3, -1, -1, -1}, TShape{}},
                      aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{3, 5});
  CHECK(out[1] == TShape{3, 1, 2, 2});
}

}  // namespace
}  // namespace mxtrain::test
