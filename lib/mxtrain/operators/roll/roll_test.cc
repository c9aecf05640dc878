// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// [a, b, c], rolled along every axis by definition.
void ExamineRoll(const std::string& shift, const std::string& axis, const TShape& shape,
                 const std::vector<int64_t>& by) {
  OperatorCase c;
  c.op = "roll";
  c.name = format("roll {} by {} along {}", shape.ToString(), shift, axis);
  c.kwargs = {{"shift", shift}, {"axis", axis}};
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y(in[0].size());
    const auto at = [&](int k, int64_t index) {
      const int64_t n = shape[k];
      return ((index + by[static_cast<size_t>(k)]) % n + n) % n;
    };
    size_t from = 0;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j) {
        for (int64_t k = 0; k < shape[2]; ++k)
          y[static_cast<size_t>((at(0, i) * shape[1] + at(1, j)) * shape[2] + at(2, k))] =
              in[0][from++];
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"ref"};
  RunCase(c);
}

TEST_CASE("roll along axes") {
  ExamineRoll("1", "1", {2, 4, 3}, {0, 1, 0});
  ExamineRoll("(-3, -1)", "(0, -1)", {5, 2, 3}, {-3, 0, -1});
  ExamineRoll("(9, 2, -13)", "(0, 1, 2)", {5, 3, 7}, {9, 2, -13});
  ExamineRoll("(1, 2)", "(1, 1)", {2, 5, 1}, {0, 3, 0});
  ExamineRoll("(4, 0)", "(0, 1)", {4, 3, 2}, {0, 0, 0});
  ExamineRoll("1", "2", {0, 2, 3}, {0, 0, 1});
}

TEST_CASE("roll: one shift for several axes") {
  ExamineRoll("1", "(0, 2)", {2, 3, 4}, {1, 0, 1});
}

TEST_CASE("roll of the flattened array") {
  OperatorCase c;
  c.op = c.name = "roll";
  c.kwargs = {{"shift", "-2"}};
  c.shapes = {{2, 3}};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [](const Arrays& in, const Arrays&) {
    const Values& x = in[0];
    return Arrays{{x[2], x[3], x[4], x[5], x[0], x[1]}};
  };
  c.tolerance = {0, "a copy"};
  RunCase(c);
}

TEST_CASE("roll: errors") {
  CHECK_THROWS_WITH(TestRegistry().Create("roll", {{"shift", "(1, 2)"}, {"axis", "0"}}),
                    "roll: shift = (1, 2) must have one entry, or one for each of axis = (0,)");
  CHECK_THROWS_WITH(TestRegistry().Create("roll", {{"shift", "(1, 2)"}}),
                    "roll: shift = (1, 2) must have one entry, since there is no axis");
  std::vector<TShape> in = {TShape{2, 3}}, out(1), aux;
  CHECK_THROWS_WITH(
      TestRegistry().Create("roll", {{"shift", "1"}, {"axis", "2"}})->InferShape(&in, &out, &aux),
      "roll: axis 2 is out of range for shape [2, 3]");
}

}  // namespace
}  // namespace mxtrain::test
