// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// In images of 40 x 30 pixels: within, at the edges, small, none.
const Values kFoundRegions = {0, 3.5, 4,  20.25, 16, 0,  0,  0,  40, 30, 1, 10, 9, 11, 9.5,
                              1, 30,  20, 40,    30, -1, -1, -1, -1, -1, 1, 5,  5, 35, 8};

// `in`: rois, scores, offsets, data.
Values FoundRows(const Arrays& in, const std::vector<TShape>& shapes, const Values& variances,
                 double least_side) {
  const auto regions = static_cast<size_t>(shapes[1][1]),
             columns = static_cast<size_t>(shapes[1][2]);
  Values out;
  for (size_t n = 0; n < static_cast<size_t>(shapes[1][0]); ++n) {
    for (size_t k = 1; k < columns; ++k) {
      for (size_t r = n * regions; r < (n + 1) * regions; ++r) {
        const double *roi = &in[0][r * 5], *x = &in[1][r * columns],
                     *t = &in[2][(r * columns + k) * 4];
        double sum = 0, low[2], high[2];
        for (size_t j = 0; j < columns; ++j) sum += std::exp(x[j]);
        for (size_t axis = 0; axis < 2; ++axis) {
          const double length = axis == 0 ? 40 : 30, extent = roi[axis + 3] - roi[axis + 1];
          const double middle =
              (roi[axis + 1] + roi[axis + 3]) / 2 + t[axis] * variances[axis] * extent;
          const double half =
              extent / 2 * std::min(62.5, std::exp(t[axis + 2] * variances[axis + 2]));
          low[axis] = std::clamp(middle - half, 0.0, length);
          high[axis] = std::clamp(middle + half, 0.0, length);
        }
        if (roi[0] >= 0 && high[0] - low[0] >= least_side && high[1] - low[1] >= least_side) {
          out.insert(out.end(), {static_cast<double>(k - 1), std::exp(x[k]) / sum, low[0], low[1],
                                 high[0], high[1]});
        } else {
          out.insert(out.end(), 6, -1.0);
        }
      }
    }
  }
  return out;
}

void ExamineFound(const std::string& name, int64_t images, int64_t columns,
                  const Values& variances = {0.1, 0.1, 0.2, 0.2}, double least_side = 0.01,
                  double most_offset = 2) {
  OperatorCase c;
  c.op = "RegionBoxes";
  c.name = "RegionBoxes, " + name;
  std::string text = "(";
  for (const double v : variances) text += format("{},", v);
  c.kwargs = {{"variances", text + ")"}, {"least_side", std::to_string(least_side)}};
  c.shapes = {{images, 3, 5}, {images, 3, columns}, {images, 3, 4 * columns}, {images, 1, 30, 40}};
  c.inputs = {Cycle(kFoundRegions), Distinct(-3, 3), Distinct(-most_offset, most_offset),
              Constant(0)};
  c.forward = [=, shapes = c.shapes](const Arrays& in, const Arrays&) {
    return Arrays{FoundRows(in, shapes, variances, least_side)};
  };
  c.backward = false;
  c.tolerance = {400, "exponentials times the sides of a region"};
  RunCase(c);
}

TEST_CASE("RegionBoxes") {
  ExamineFound("two images", 2, 4);
  ExamineFound("one class", 2, 2, {1, 0.5, 0.25, 0.125});
  ExamineFound("short sides", 2, 3, {0.1, 0.1, 0.2, 0.2}, 5);
  ExamineFound("boxes larger than they may be", 2, 3, {0.01, 0.01, 1, 1}, 0.01, 6);
  ExamineFound("no images", 0, 3);
}

TEST_CASE("RegionBoxes: shapes and types") {
  const auto op = TestRegistry().Create("RegionBoxes", {});
  CHECK(!op->HasGradient(1));
  CHECK(op->NeedsHeadGradient());
  std::vector<TShape> in = {{2, 7, 5}, TShape(), {2, TShape::kUnknown, 16}, {2, 3, 30, 40}}, out(1),
                      aux;
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[1] == TShape{2, 7, 4});
  CHECK(out[0] == TShape{2, 3, 7, 6});
  const auto refusal = [&op](std::vector<TShape> given) {
    std::vector<TShape> rows(1), states;
    return MessageOf([&] { op->InferShape(&given, &rows, &states); });
  };
  CHECK(Says(refusal({{2, 7, 5}, {2, 6, 4}, TShape(), {2, 3, 30, 40}}),
             "RegionBoxes: rois has shape"));
  CHECK(Says(refusal({{2, 7, 5}, {2, 7, 1}, TShape(), {2, 3, 30, 40}}),
             "expected [images, regions, classes + 1], the background first"));
  CHECK(Says(refusal({{2, 7, 5}, {2, 7, 4}, TShape(), {2, 3, 30}}), "must be images [N, C, H, W]"));
  std::vector<DType> types = {DType::kUnknown, DType::kFloat16, DType::kUnknown, DType::kFloat16},
                     result(1, DType::kUnknown), none;
  CHECK(op->InferType(&types, &result, &none));
  CHECK(types[0] == DType::kFloat32);
  CHECK(result[0] == DType::kFloat32);
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("RegionBoxes", {{"variances", "(1,)"}});
             }),
             "expected four numbers"));
}

}  // namespace
}  // namespace mxtrain::test
