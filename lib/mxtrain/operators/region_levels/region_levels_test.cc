// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/error_message.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// Squares of 112, 223.9, 224 and 448 pixels, one of 2 x 896, of 5000, none, of no area, inverted.
const Values kLevelledRegions = {0,  3,  4, 115, 116, 1, 0, 0, 223.9, 223.9, 0, 1, 1, 225,  225,
                                 2,  10, 0, 458, 448, 0, 5, 5, 7,     901,   1, 0, 0, 5000, 5000,
                                 -1, 0,  0, 224, 224, 0, 5, 5, 5,     9,     1, 9, 9, 4,    4};

OperatorCase LevelsCase(int first, int last, double size, double level) {
  OperatorCase c;
  c.op = "RegionLevels";
  c.name = format("RegionLevels {} to {}", first, last);
  c.kwargs = {{"first_level", std::to_string(first)},
              {"last_level", std::to_string(last)},
              {"usual_size", std::to_string(size)},
              {"usual_level", std::to_string(level)}};
  c.shapes = {{9, 5}};
  c.inputs = {Cycle(kLevelledRegions)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Arrays out(static_cast<size_t>(last - first + 1));
    for (size_t r = 0; r < 9; ++r) {
      const double* roi = &in[0][r * 5];
      const double area = std::max(roi[3] - roi[1], 0.0) * std::max(roi[4] - roi[2], 0.0);
      double own = area > 0 ? std::floor(level + std::log2(std::sqrt(area) / size) + 1e-6) : first;
      own = std::min(std::max(own, double(first)), double(last));
      for (int l = first; l <= last; ++l) {
        for (size_t k = 0; k < 5; ++k)
          out[static_cast<size_t>(l - first)].push_back(own == l && roi[0] >= 0 ? roi[k] : -1);
      }
    }
    return out;
  };
  c.backward = false;
  c.tolerance = {0, "copies"};
  return c;
}

TEST_CASE("RegionLevels") {
  RunCase(LevelsCase(2, 5, 224, 4));
  RunCase(LevelsCase(3, 4, 224, 4));
  RunCase(LevelsCase(0, 0, 224, 4));
  RunCase(LevelsCase(1, 8, 100, 3));
  OperatorCase none = LevelsCase(2, 5, 224, 4);
  none.shapes = {{0, 5}};
  none.forward = [](const Arrays&, const Arrays&) { return Arrays(4); };
  RunCase(none);
}

TEST_CASE("RegionLevels: parameters and shapes") {
  const auto op = TestRegistry().Create("RegionLevels", {});
  CHECK(op->ListOutputs() == std::vector<std::string>{"output0", "output1", "output2", "output3"});
  std::vector<TShape> in(1), out(4), aux;
  out[2] = {7, 5};
  CHECK(op->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{7, 5});
  CHECK(out[0] == TShape{7, 5});
  in[0] = {7, 4};
  CHECK(Says(MessageOf([&] { op->InferShape(&in, &out, &aux); }), "RegionLevels: rois has shape"));
  CHECK(Says(MessageOf([] {
               TestRegistry().Create("RegionLevels", {{"first_level", "5"}, {"last_level", "4"}});
             }),
             "expected one to 16 levels"));
}

}  // namespace
}  // namespace mxtrain::test
