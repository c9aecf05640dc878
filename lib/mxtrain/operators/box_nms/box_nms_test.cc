// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// What the parameters say, and rows [class, score, box, something else].
struct Nms {
  TShape shape;
  double overlap = 0.5, least_score = 0;
  int most = -1, background = -1;
  bool classes = false, force = false;
  std::string in = "corner", out = "corner";

  size_t images() const { return static_cast<size_t>(shape.Product(0, shape.ndim() - 2)); }
  size_t boxes() const { return static_cast<size_t>(shape[shape.ndim() - 2]); }
  size_t columns() const { return static_cast<size_t>(shape[shape.ndim() - 1]); }
};

// Numbers that every floating type holds, scores among which some are equal.
Values RandomRows(const Nms& nms) {
  std::mt19937 random(static_cast<unsigned>(nms.shape.Size()));
  const auto draw = [&random](int n) {
    return static_cast<double>(random() % static_cast<unsigned>(n));
  };
  Values x;
  for (size_t row = 0; row < nms.images() * nms.boxes(); ++row) {
    const double left = draw(16) / 8, top = draw(16) / 8, w = draw(13) / 8, h = draw(13) / 8;
    x.insert(x.end(), {draw(3), draw(40) / 32 - 0.25});
    if (nms.in == "corner") {
      x.insert(x.end(), {left, top, left + w, top + h});
    } else {
      x.insert(x.end(), {left, top, w, h});
    }
    for (size_t k = 6; k < nms.columns(); ++k) x.push_back(draw(9));
  }
  return x;
}

struct Rectangle {
  double left, top, right, bottom;
  double Area() const { return std::max(right - left, 0.0) * std::max(bottom - top, 0.0); }
};
Rectangle RectangleOf(const double* box, const std::string& form) {
  if (form == "corner") return {box[0], box[1], box[2], box[3]};
  return {box[0] - box[2] / 2, box[1] - box[3] / 2, box[0] + box[2] / 2, box[1] + box[3] / 2};
}

// The rows of an image that are kept, by the definition.
std::vector<size_t> KeptRows(const Nms& nms, const double* image) {
  const auto row = [&](size_t i) { return image + i * nms.columns(); };
  std::vector<size_t> order(nms.boxes());
  std::iota(order.begin(), order.end(), size_t{0});
  std::erase_if(order, [&](size_t i) {
    return row(i)[1] <= nms.least_score ||
           (nms.classes && nms.background >= 0 && row(i)[0] == nms.background);
  });
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return row(a)[1] > row(b)[1]; });
  if (nms.most > 0 && order.size() > static_cast<size_t>(nms.most))
    order.resize(static_cast<size_t>(nms.most));
  std::vector<size_t> kept;
  for (const size_t i : order) {
    const Rectangle a = RectangleOf(row(i) + 2, nms.in);
    const bool suppressed = std::any_of(kept.begin(), kept.end(), [&](size_t k) {
      if (nms.classes && !nms.force && row(i)[0] != row(k)[0]) return false;
      const Rectangle b = RectangleOf(row(k) + 2, nms.in);
      const double common = Rectangle{std::max(a.left, b.left), std::max(a.top, b.top),
                                      std::min(a.right, b.right), std::min(a.bottom, b.bottom)}
                                .Area();
      return common > nms.overlap * (a.Area() + b.Area() - common);
    });
    if (!suppressed) kept.push_back(i);
  }
  return kept;
}

// From a box in one format to the other one.
using Matrix = double[4][4];
const Matrix& Conversion(const Nms& nms) {
  static const Matrix same = {{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, 1, 0}, {0, 0, 0, 1}};
  static const Matrix to_center = {{.5, 0, .5, 0}, {0, .5, 0, .5}, {-1, 0, 1, 0}, {0, -1, 0, 1}};
  static const Matrix to_corner = {{1, 0, -.5, 0}, {0, 1, 0, -.5}, {1, 0, .5, 0}, {0, 1, 0, .5}};
  return nms.in == nms.out ? same : nms.in == "corner" ? to_center : to_corner;
}

void ExamineBoxNms(const Nms& nms) {
  OperatorCase c;
  c.op = "box_nms";
  c.name =
      format("box_nms {} overlap {} topk {} background {} force {} {} to {}", nms.shape.ToString(),
             nms.overlap, nms.most, nms.background, nms.force, nms.in, nms.out);
  c.kwargs = {{"overlap_thresh", std::to_string(nms.overlap)},
              {"valid_thresh", std::to_string(nms.least_score)},
              {"topk", std::to_string(nms.most)},
              {"id_index", nms.classes ? "0" : "-1"},
              {"background_id", std::to_string(nms.background)},
              {"force_suppress", nms.force ? "True" : "False"},
              {"in_format", nms.in},
              {"out_format", nms.out}};
  c.shapes = {nms.shape};
  c.inputs = {Cycle(nms.shape.Size() > 0 ? RandomRows(nms) : Values{0})};
  const size_t columns = nms.columns(), rows = nms.boxes();
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out(in[0].size(), -1);
    for (size_t image = 0; image < nms.images(); ++image) {
      const double* data = in[0].data() + image * rows * columns;
      double* to = out.data() + image * rows * columns;
      for (const size_t kept : KeptRows(nms, data)) {
        const double* from = data + kept * columns;
        std::copy_n(from, columns, to);
        for (size_t i = 0; i < 4; ++i) {
          to[2 + i] = 0;
          for (size_t j = 0; j < 4; ++j) to[2 + i] += Conversion(nms)[i][j] * from[2 + j];
        }
        to += columns;
      }
    }
    return Arrays{out};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values gradient(in[0].size());
    for (size_t image = 0; image < nms.images(); ++image) {
      const size_t first = image * rows * columns;
      const double* from = head[0].data() + first;
      for (const size_t kept : KeptRows(nms, in[0].data() + first)) {
        double* to = gradient.data() + first + kept * columns;
        std::copy_n(from, columns, to);
        for (size_t j = 0; j < 4; ++j) {
          to[2 + j] = 0;
          for (size_t i = 0; i < 4; ++i) to[2 + j] += Conversion(nms)[i][j] * from[2 + i];
        }
        from += columns;
      }
    }
    return Arrays{gradient};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {nms.in == nms.out ? 0.0 : 4.0, "copies, and sums of two"};
  RunCase(c);
}

TEST_CASE("box_nms") {
  ExamineBoxNms({.shape = {23, 6}});
  ExamineBoxNms({.shape = {3, 41, 6}, .overlap = 0.25});
  ExamineBoxNms({.shape = {2, 2, 30, 8}, .overlap = 0.625, .classes = true});
  ExamineBoxNms({.shape = {2, 45, 6}, .overlap = 0.25, .background = 1, .classes = true});
  ExamineBoxNms({.shape = {2, 45, 6}, .overlap = 0.25, .classes = true, .force = true});
  ExamineBoxNms({.shape = {2, 37, 7}, .least_score = 0.5, .most = 5});
  ExamineBoxNms({.shape = {1, 300, 6}, .overlap = 0.75, .most = 250, .classes = true});
  ExamineBoxNms({.shape = {2, 19, 6}, .overlap = 0});
  ExamineBoxNms({.shape = {2, 19, 6}, .least_score = 2});  // no row takes part
  ExamineBoxNms({.shape = {1, 1, 6}});
  ExamineBoxNms({.shape = {0, 3, 6}});
  ExamineBoxNms({.shape = {2, 0, 6}});
}

TEST_CASE("box_nms: boxes by center and size") {
  ExamineBoxNms({.shape = {2, 31, 6}, .in = "center", .out = "center"});
  ExamineBoxNms({.shape = {2, 31, 6}, .in = "center"});
  ExamineBoxNms({.shape = {2, 31, 7}, .out = "center"});
}

TEST_CASE("box_nms: rows have the columns that are named") {
  const auto nms = TestRegistry().Create("box_nms", {{"coord_start", "3"}});
  std::vector<TShape> in = {TShape{5, 6}}, out(1), aux;
  CHECK_THROWS_WITH_AS(
      nms->InferShape(&in, &out, &aux),
      "_contrib_box_nms: the data have shape [5, 6]; expected [..., boxes, columns] "
      "with at least 7 columns",
      Error);
  in = {TShape{7}};
  CHECK_THROWS_AS(nms->InferShape(&in, &out, &aux), Error);
}

}  // namespace
}  // namespace mxtrain::test
