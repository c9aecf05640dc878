// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Of maps of `classes` scores, by the definition.
Arrays Proposed(const Arrays& in, const std::vector<TShape>& shapes, const Values& strides) {
  const size_t levels = strides.size();
  const int64_t images = shapes[0][0], classes = shapes[0][1];
  Values rows;
  for (int64_t n = 0; n < images; ++n) {
    for (size_t l = 0; l < levels; ++l) {
      const int64_t h = shapes[l][2], w = shapes[l][3];
      const auto at = [&](size_t map, int64_t channels, int64_t c, int64_t y, int64_t x) {
        return in[map][static_cast<size_t>(((n * channels + c) * h + y) * w + x)];
      };
      for (int64_t y = 0; y < h; ++y) {
        for (int64_t x = 0; x < w; ++x) {
          int64_t best = 0;
          for (int64_t k = 1; k < classes; ++k) {
            if (at(l, classes, k, y, x) > at(l, classes, best, y, x)) best = k;
          }
          const double px = (static_cast<double>(x) + 0.5) * strides[l],
                       py = (static_cast<double>(y) + 0.5) * strides[l];
          const auto far = [&](int64_t side) {
            return strides[l] * std::exp(at(levels + l, 4, side, y, x));
          };
          const double width = strides[0] * static_cast<double>(shapes[0][3]),
                       height = strides[0] * static_cast<double>(shapes[0][2]);
          const double score = 1 / (1 + std::exp(-at(l, classes, best, y, x)));
          const Values row = {
              static_cast<double>(best),           score,
              std::clamp(px - far(0), 0.0, width), std::clamp(py - far(1), 0.0, height),
              std::clamp(px + far(2), 0.0, width), std::clamp(py + far(3), 0.0, height)};
          rows.insert(rows.end(), row.begin(), row.end());
        }
      }
    }
  }
  return {rows};
}

void ExaminePointBoxes(const std::vector<TShape>& shapes, const std::string& text,
                       const Values& strides) {
  OperatorCase c;
  c.op = "PointBoxes";
  c.name = "PointBoxes " + shapes[0].ToString() + " " + text;
  c.kwargs = {{"strides", text}};
  c.shapes = shapes;
  c.inputs = {Distinct(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) { return Proposed(in, shapes, strides); };
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
    Arrays zeros;
    for (const Values& map : in) zeros.emplace_back(map.size());
    return zeros;
  };
  c.tolerance = {64, "an exponential times a stride, of several units"};
  RunCase(c);
}

}  // namespace

TEST_CASE("PointBoxes") {
  ExaminePointBoxes({{2, 3, 3, 5}, {2, 4, 3, 5}}, "(8,)", {8});
  ExaminePointBoxes({{1, 1, 1, 1}, {1, 4, 1, 1}}, "(1,)", {1});
  ExaminePointBoxes(
      {{2, 2, 4, 3}, {2, 2, 2, 2}, {2, 2, 1, 1}, {2, 4, 4, 3}, {2, 4, 2, 2}, {2, 4, 1, 1}},
      "(4, 8, 16)", {4, 8, 16});
  ExaminePointBoxes({{0, 2, 4, 3}, {0, 4, 4, 3}}, "(4,)", {4});
}

// Rows of one level of distributions over `bins` distances, by the definition in point_grid.h.
Arrays ProposedOfDistributions(const Arrays& in, const std::vector<TShape>& shapes, double stride,
                               int64_t bins) {
  const int64_t classes = shapes[0][1], h = shapes[0][2], w = shapes[0][3], plane = h * w;
  Values rows;
  for (int64_t n = 0; n < shapes[0][0]; ++n) {
    for (int64_t i = 0; i < plane; ++i) {
      int64_t best = 0;
      const auto score = [&](int64_t k) {
        return in[0][static_cast<size_t>((n * classes + k) * plane + i)];
      };
      for (int64_t k = 1; k < classes; ++k) best = score(k) > score(best) ? k : best;
      const auto far = [&](int64_t side) {
        double sum = 0, mean = 0;
        for (int64_t b = 0; b < bins; ++b) {
          const double part =
              std::exp(in[1][static_cast<size_t>(((n * 4 + side) * bins + b) * plane + i)]);
          sum += part, mean += static_cast<double>(b) * part;
        }
        return stride * mean / sum;
      };
      const double x = (static_cast<double>(i % w) + 0.5) * stride,
                   y = (static_cast<double>(i / w) + 0.5) * stride,
                   width = stride * static_cast<double>(w),
                   height = stride * static_cast<double>(h);
      const Values row = {static_cast<double>(best),          1 / (1 + std::exp(-score(best))),
                          std::clamp(x - far(0), 0.0, width), std::clamp(y - far(1), 0.0, height),
                          std::clamp(x + far(2), 0.0, width), std::clamp(y + far(3), 0.0, height)};
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return {rows};
}

TEST_CASE("PointBoxes of distributions") {
  for (const int64_t bins : {2, 7, 64}) {
    const std::vector<TShape> shapes = {{2, 3, 3, 5}, {2, 4 * bins, 3, 5}};
    OperatorCase c;
    c.op = "PointBoxes";
    c.name = format("PointBoxes of distributions over {}", bins);
    c.kwargs = {{"strides", "(8,)"}, {"bins", std::to_string(bins)}};
    c.shapes = shapes;
    c.inputs = {Distinct(-2, 2), Distinct(-4, 4)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      return ProposedOfDistributions(in, shapes, 8, bins);
    };
    c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
      Arrays zeros;
      for (const Values& map : in) zeros.emplace_back(map.size());
      return zeros;
    };
    c.tolerance = {256, "means of distributions times a stride"};
    RunCase(c);
  }
  const auto message = [](const Kwargs& kwargs) {
    return MessageOf([&] { TestRegistry().Create("PointBoxes", kwargs); });
  };
  CHECK(
      Says(message({{"strides", "(8,)"}, {"bins", "1"}}), "PointBoxes: bins = 1: expected 0, or"));
  CHECK(Says(message({{"strides", "(8,)"}, {"bins", "4"}, {"form", "centers"}}),
             "PointBoxes: bins = 4 is for form: distances"));
}

// Rows of one level of centres, by the definition in point_grid.h.
Arrays ProposedOfCenters(const Arrays& in, const std::vector<TShape>& shapes, double stride,
                         bool clip) {
  const int64_t classes = shapes[0][1], h = shapes[0][2], w = shapes[0][3], plane = h * w;
  const auto sigmoid = [](double z) { return 1 / (1 + std::exp(-z)); };
  const auto at = [&](size_t map, int64_t i) { return in[map][static_cast<size_t>(i)]; };
  Values rows;
  for (int64_t n = 0; n < shapes[0][0]; ++n) {
    for (int64_t i = 0; i < plane; ++i) {
      int64_t best = 0;
      const auto score = [&](int64_t k) { return at(0, (n * classes + k) * plane + i); };
      for (int64_t k = 1; k < classes; ++k) best = score(k) > score(best) ? k : best;
      const auto box = [&](int64_t k) { return at(1, (n * 4 + k) * plane + i); };
      const double x = (static_cast<double>(i % w) + box(0)) * stride,
                   y = (static_cast<double>(i / w) + box(1)) * stride,
                   half_width = std::exp(box(2)) * stride / 2,
                   half_height = std::exp(box(3)) * stride / 2;
      const auto end = [&](double value, int64_t cells) {
        return clip ? std::clamp(value, 0.0, stride * static_cast<double>(cells)) : value;
      };
      const Values row = {
          static_cast<double>(best), sigmoid(score(best)) * sigmoid(at(2, n * plane + i)),
          end(x - half_width, w),    end(y - half_height, h),
          end(x + half_width, w),    end(y + half_height, h)};
      rows.insert(rows.end(), row.begin(), row.end());
    }
  }
  return {rows};
}

TEST_CASE("PointBoxes of centres") {
  for (const bool clip : {true, false}) {
    const std::vector<TShape> shapes = {{2, 3, 3, 5}, {2, 4, 3, 5}, {2, 1, 3, 5}};
    OperatorCase c;
    c.op = "PointBoxes";
    c.name = format("PointBoxes of centres, clip {}", clip);
    c.kwargs = {{"strides", "(8,)"}, {"form", "centers"}, {"clip", clip ? "True" : "False"}};
    c.shapes = shapes;
    c.inputs = {Distinct(-2, 2)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      return ProposedOfCenters(in, shapes, 8, clip);
    };
    c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
      Arrays zeros;
      for (const Values& map : in) zeros.emplace_back(map.size());
      return zeros;
    };
    c.tolerance = {64, "an exponential times a stride, of several units"};
    RunCase(c);
  }
  const auto op = TestRegistry().Create("PointBoxes", {{"strides", "(8, 4)"}, {"form", "centers"}});
  CHECK(op->ListArguments() ==
        std::vector<std::string>{"score0", "score1", "box0", "box1", "objectness0", "objectness1"});
  std::vector<TShape> in = {{1, 2, 3, 3}, {1, 2, 6, 6}, {1, 4, 3, 3},
                            {1, 4, 6, 6}, {1, 1, 3, 3}, {1, 2, 6, 6}},
                      out(1), aux;
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }),
             "PointBoxes: objectness1 has shape"));
}

TEST_CASE("PointBoxes: maps that do not fit") {
  const auto shapes = [](const TShape& score, const TShape& side) {
    const auto op = TestRegistry().Create("PointBoxes", {{"strides", "(8,)"}});
    std::vector<TShape> in = {score, side}, out(1), aux;
    op->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(shapes({2, 3, 4, 5}, {2, 4, 4, 5}) == TShape{2, 20, 6});
  CHECK(shapes({2, 3, 4, 5}, TShape()) == TShape{2, 20, 6});
  const auto message = [&](const TShape& score, const TShape& side) {
    return MessageOf([&] { shapes(score, side); });
  };
  CHECK(Says(message({2, 3, 4, 5}, {2, 5, 4, 5}), "PointBoxes: side0 has shape"));
  CHECK(Says(message({2, 3, 4, 5}, {2, 4, 4, 6}), "has shape"));
  CHECK(Says(message({2, 0, 4, 5}, {2, 4, 4, 5}), "the scores are of no class"));
  for (const char* const strides : {"(0,)", "()", "(8, -1)"}) {
    const std::string text = MessageOf([&] {
      (void)TestRegistry().Create("PointBoxes", {{"strides", strides}});
    });
    CHECK(Says(text, "expected one to 8 positive numbers, one per level"));
  }
}

}  // namespace mxtrain::test
