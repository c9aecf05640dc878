// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

bool Contains(const double* box, bool center, double x, double y) {
  double left = box[0], top = box[1], right = box[2], bottom = box[3];
  if (center) {
    const double w = right, h = bottom;
    right = left + w / 2, bottom = top + h / 2, left -= w / 2, top -= h / 2;
  }
  return x > left && x < right && y > top && y < bottom;
}
// By counting the cells of a grid: their side, 1/16, divides every coordinate here.
double Overlap(const double* a, const double* b, bool center) {
  double common = 0, together = 0;
  for (double x = -4 + 1.0 / 32; x < 8; x += 1.0 / 16) {
    for (double y = -4 + 1.0 / 32; y < 8; y += 1.0 / 16) {
      const bool in_a = Contains(a, center, x, y), in_b = Contains(b, center, x, y);
      common += in_a && in_b ? 1 : 0;
      together += in_a || in_b ? 1 : 0;
    }
  }
  return common > 0 ? common / together : 0;
}

// Coordinates that are multiples of 1/8.
const Values kBoxes = {0, 0,   2, 2, 1,    1,     3,     3,    0.5, 0.5,  1, 1.25, 2, 0, 4,   2,
                       0, 0.5, 2, 2, 1.25, 0.125, 1.875, 3.75, 1,   1.25, 1, 2,    3, 3, 3.5, 2};

void ExamineBoxIou(const TShape& lhs, const TShape& rhs, const std::string& format_name) {
  OperatorCase c;
  c.op = "box_iou";
  c.name = format("box_iou {} of {} and {}", format_name, lhs.ToString(), rhs.ToString());
  c.kwargs = {{"format", format_name}};
  c.shapes = {lhs, rhs};
  Values turned(kBoxes.rbegin(), kBoxes.rend());
  std::rotate(turned.begin(), turned.begin() + 2, turned.end());
  c.inputs = {Cycle(kBoxes), Cycle(turned)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    for (size_t i = 0; i < in[0].size(); i += 4) {
      for (size_t j = 0; j < in[1].size(); j += 4)
        out.push_back(Overlap(&in[0][i], &in[1][j], format_name == "center"));
    }
    return Arrays{out};
  };
  c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) {
    return Arrays{Values(in[0].size()), Values(in[1].size())};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {4, "a division of sums that are exact"};
  RunCase(c);
}

TEST_CASE("box_iou") {
  for (const char* format_name : {"corner", "center"}) {
    ExamineBoxIou({8, 4}, {8, 4}, format_name);
    ExamineBoxIou({2, 3, 4}, {5, 4}, format_name);
    ExamineBoxIou({4}, {3, 4}, format_name);
    ExamineBoxIou({1, 4}, {1, 1, 4}, format_name);
    ExamineBoxIou({0, 4}, {2, 4}, format_name);
  }
}

TEST_CASE("box_iou: boxes without an area have none in common") {
  OperatorCase c;
  c.op = c.name = "_contrib_box_iou";
  c.shapes = {{3, 4}, {2, 4}};
  c.inputs = {Cycle({1, 1, 1, 1, 2, 2, 1, 1, 0, 0, 2, 2}), Cycle({1, 1, 1, 1, 0, 0, 2, 2})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{0, 0, 0, 0, 0, 1}}; };
  c.backward = false;
  RunCase(c);
}

TEST_CASE("box_iou: a box has four numbers") {
  const auto iou = TestRegistry().Create("box_iou", {});
  std::vector<TShape> in = {TShape{5, 3}, TShape{2, 4}}, out(1), aux;
  CHECK_THROWS_WITH_AS(iou->InferShape(&in, &out, &aux),
                       "_contrib_box_iou: lhs has shape [5, 3]; expected [..., 4]", Error);
  in = {TShape{5, 7, 4}, TShape{2, 4}};
  CHECK(iou->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{5, 7, 2});
}

}  // namespace
}  // namespace mxtrain::test
