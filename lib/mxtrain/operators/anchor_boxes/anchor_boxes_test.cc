// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Of four anchors, one of them beyond the edges of the image.
const Values kProposalCorners = {0.1, 0.2, 0.5, 0.9,  0.4, 0,    0.9, 0.3,
                                 0,   0.5, 1,   0.75, 0.7, -0.2, 1.4, 1.1};
const Values kProposalCenters = {0.3, 0.55,  0.4, 0.7,  0.65, 0.15, 0.5, 0.3,
                                 0.5, 0.625, 1,   0.25, 1.05, 0.45, 0.7, 1.3};

// `in`: scores, offsets, anchors; of an image of 40 x 30 pixels.
Values ProposedRows(const Arrays& in, const std::vector<TShape>& shapes, const Values& variances,
                    bool center) {
  const auto anchors = static_cast<size_t>(shapes[0][1]),
             columns = static_cast<size_t>(shapes[0][2]);
  Values out;
  for (size_t n = 0; n < static_cast<size_t>(shapes[0][0]); ++n) {
    for (size_t k = 1; k < columns; ++k) {
      for (size_t a = 0; a < anchors; ++a) {
        const double *x = &in[0][(n * anchors + a) * columns], *t = &in[1][(n * anchors + a) * 4],
                     *anchor = &in[2][a * 4];
        double sum = 0;
        for (size_t j = 0; j < columns; ++j) sum += std::exp(x[j]);
        out.push_back(static_cast<double>(k - 1));
        out.push_back(std::exp(x[k]) / sum);
        double low[2], high[2];
        for (size_t axis = 0; axis < 2; ++axis) {
          const double length = axis == 0 ? 40 : 30;
          const double extent =
              (center ? anchor[axis + 2] : anchor[axis + 2] - anchor[axis]) * length;
          const double middle = center ? anchor[axis] * length : anchor[axis] * length + extent / 2;
          const double at = middle + t[axis] * variances[axis] * extent;
          const double growth = std::min(1000.0 / 16, std::exp(t[axis + 2] * variances[axis + 2]));
          low[axis] = std::clamp(at - extent * growth / 2, 0.0, length);
          high[axis] = std::clamp(at + extent * growth / 2, 0.0, length);
        }
        out.insert(out.end(), {low[0], low[1], high[0], high[1]});
      }
    }
  }
  return out;
}

void ExamineProposals(const std::vector<TShape>& shapes, const Values& variances, bool center,
                      double most_offset) {
  OperatorCase c;
  c.op = "AnchorBoxes";
  c.name = format("AnchorBoxes of {}, {}", shapes[0].ToString(), center ? "centers" : "corners");
  c.kwargs = {{"size", "(30, 40)"}, {"format", center ? "center" : "corner"}};
  std::string text = "(";
  for (const double v : variances) text += format("{},", v);
  c.kwargs.emplace_back("variances", text + ")");
  c.shapes = shapes;
  c.inputs = {Distinct(-3, 3), Distinct(-most_offset, most_offset),
              Cycle(center ? kProposalCenters : kProposalCorners)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    return Arrays{ProposedRows(in, shapes, variances, center)};
  };
  c.backward = false;
  c.tolerance = {200, "exponentials times the sides of an anchor"};
  RunCase(c);
}

TEST_CASE("AnchorBoxes") {
  const Values usual = {0.1, 0.1, 0.2, 0.2};
  ExamineProposals({{2, 4, 3}, {2, 4, 4}, {1, 4, 4}}, usual, false, 2);
  ExamineProposals({{3, 4, 5}, {3, 4, 4}, {1, 4, 4}}, {1, 0.5, 0.25, 0.125}, true, 2);
  // Some boxes become larger than they may.
  ExamineProposals({{2, 4, 2}, {2, 4, 4}, {1, 4, 4}}, {0.01, 0.01, 1, 1}, false, 6);
  ExamineProposals({{0, 4, 3}, {0, 4, 4}, {1, 4, 4}}, usual, false, 2);
}

TEST_CASE("AnchorBoxes: a box is not larger than 62.5 anchors") {
  const auto value = [](double offset) {
    OperatorCase c;
    c.op = "AnchorBoxes";
    c.name = format("AnchorBoxes, offset {}", offset);
    c.kwargs = {{"size", "(1000, 1000)"}, {"variances", "(1, 1, 1, 1)"}};
    c.shapes = {{1, 1, 2}, {1, 1, 4}, {1, 1, 4}};
    c.inputs = {Constant(0), Cycle({0, 0, offset, offset}), Cycle({0.499, 0.498, 0.501, 0.502})};
    const double growth = std::min(62.5, std::exp(offset));
    c.forward = [growth](const Arrays&, const Arrays&) {
      return Arrays{{0, 0.5, 500 - growth, 500 - 2 * growth, 500 + growth, 500 + 2 * growth}};
    };
    c.backward = false;
    c.tolerance = {4000, "0.501 - 0.499"};
    RunCase(c);
  };
  value(4);
  value(4.2);
}

TEST_CASE("AnchorBoxes: parameters and shapes") {
  const auto op = TestRegistry().Create("AnchorBoxes", {{"size", "(30, 40)"}});
  CHECK(op->ListArguments() == std::vector<std::string>{"scores", "offsets", "anchors"});
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
  std::vector<TShape> in = {{2, TShape::kUnknown, 4}, TShape(), {1, 5, 4}}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 5, 4});
  CHECK(out[0] == TShape{2, 3, 5, 6});
  in = {TShape(), TShape(), TShape()};
  out = {{2, 3, 5, 6}};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 5, 4});
  const auto refusal = [&op](std::vector<TShape> given) {
    std::vector<TShape> result(1), none;
    return MessageOf([&] { op->InferShape(&given, &result, &none); });
  };
  CHECK(Says(refusal({{2, 5, 4}, {2, 6, 4}, TShape()}), "AnchorBoxes: offsets has shape"));
  CHECK(refusal({{2, 0, 4}, TShape(), TShape()}) == "AnchorBoxes: there is no anchor");
  CHECK(Says(refusal({{2, 5, 1}, TShape(), TShape()}),
             "expected [images, anchors, classes + 1], the background first"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("AnchorBoxes", {{"size", "(30,)"}});
             }),
             "AnchorBoxes: size = (30,): expected two positive numbers, height and width"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("AnchorBoxes", {{"size", "(3, 4)"}, {"variances", "(1,)"}});
             }),
             "expected four numbers"));
}

}  // namespace
}  // namespace mxtrain::test
