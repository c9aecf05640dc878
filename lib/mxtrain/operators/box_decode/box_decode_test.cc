// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineBoxDecode(const TShape& data, bool corner, double clip, const Values& factors) {
  OperatorCase c;
  c.op = "box_decode";
  c.name =
      format("box_decode {} of {}, clip {}", data.ToString(), corner ? "corners" : "centers", clip);
  c.kwargs = {{"format", corner ? "corner" : "center"}, {"clip", std::to_string(clip)}};
  for (size_t k = 0; k < 4; ++k)
    c.kwargs.emplace_back(format("std{}", k), std::to_string(factors[k]));
  c.shapes = {data, {1, data[1], 4}};
  c.inputs = {Uniform(-2, 2), Cycle({0.25, 0.5, 0.75, 1.5, -1, 2, 3, 4, 1, 1, 1.5, 1.25})};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values out;
    const auto boxes = static_cast<size_t>(data[1]);
    for (size_t i = 0; i * 4 < in[0].size(); ++i) {
      const double *x = &in[0][i * 4], *a = &in[1][i % boxes * 4];
      const double w = corner ? a[2] - a[0] : a[2], h = corner ? a[3] - a[1] : a[3];
      const double middle_x = corner ? a[0] + w / 2 : a[0], middle_y = corner ? a[1] + h / 2 : a[1];
      double log_w = x[2] * factors[2], log_h = x[3] * factors[3];
      if (clip > 0) log_w = std::min(log_w, clip), log_h = std::min(log_h, clip);
      const double at_x = x[0] * factors[0] * w + middle_x, at_y = x[1] * factors[1] * h + middle_y;
      const double half_w = w * std::exp(log_w) / 2, half_h = h * std::exp(log_h) / 2;
      out.insert(out.end(), {at_x - half_w, at_y - half_h, at_x + half_w, at_y + half_h});
    }
    return Arrays{out};
  };
  c.backward = false;
  c.types = kAllFloatingTypes;
  c.tolerance = {64, "an exponential times a side, of several units"};
  RunCase(c);
}

TEST_CASE("box_decode") {
  ExamineBoxDecode({2, 3, 4}, false, -1, {1, 1, 1, 1});
  ExamineBoxDecode({3, 5, 4}, true, -1, {0.125, 0.25, 0.5, 0.75});
  ExamineBoxDecode({1, 7, 4}, true, 0.5, {1, 1, 1, 0.5});
  ExamineBoxDecode({2, 4, 4}, false, 0.25, {1, 1, -1, 1});
  ExamineBoxDecode({0, 4, 4}, false, 0, {1, 1, 1, 1});
  ExamineBoxDecode({2, 0, 4}, false, 0, {1, 1, 1, 1});
}

TEST_CASE("box_decode: shapes") {
  const auto op = TestRegistry().Create("box_decode", {});
  CHECK(op->TypeString() == "_contrib_box_decode");
  CHECK(op->NeedsHeadGradient());
  CHECK(!op->HasGradient(0));
  std::vector<TShape> in = {{2, TShape::kUnknown, 4}, {1, 5, 4}}, out(1), aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(out[0] == TShape{2, 5, 4});
  const auto message = [&](const TShape& data, const TShape& anchors) {
    return MessageOf([&] {
      std::vector<TShape> shapes = {data, anchors}, output(1), states;
      op->InferShape(&shapes, &output, &states);
    });
  };
  CHECK(message({2, 5, 3}, {1, 5, 4}) ==
        "_contrib_box_decode: data has shape [2, 5, 3], but [?, ?, 4] was expected");
  CHECK(Says(message({2, 5, 4}, {2, 5, 4}), "_contrib_box_decode: anchors has shape [2, 5, 4]"));
  CHECK(Says(message({2, 5, 4}, {1, 6, 4}), "_contrib_box_decode: anchors has shape [1, 6, 4]"));
  CHECK(Says(message({10, 4}, {1, 5, 4}), "_contrib_box_decode: data has shape [10, 4]"));
}

}  // namespace
}  // namespace mxtrain::test
