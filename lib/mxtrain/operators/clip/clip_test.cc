// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase ClipCase() {
  OperatorCase c;
  c.name = c.op = "clip";
  c.kwargs = {{"a_min", "-0.5"}, {"a_max", "1"}};
  c.shapes = {TShape{2, 3, 3, 5}};
  c.inputs = {UniformAwayFrom(-2, 2, {-0.5, 1}, 0.02)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [](double x) { return std::clamp(x, -0.5, 1.0); })};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "comparisons and copies"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("clip") {
  RunCase(ClipCase());
}

TEST_CASE("the gradient of clip passes at the bounds") {
  OperatorCase c = ClipCase();
  c.shapes = {TShape{4}};
  c.inputs = {Cycle({-0.5, 1, -1, 2})};
  c.gradient = [](const Arrays&, const Arrays&, const Arrays& head) {
    return Arrays{{head[0][0], head[0][1], 0, 0}};
  };
  RunCase(c);
}

TEST_CASE("clip needs both bounds") {
  CHECK_THROWS_WITH(TestRegistry().Create("clip", {{"a_min", "0"}}),
                    doctest::Contains("clip needs the parameter 'a_max'"));
}

}  // namespace
}  // namespace mxtrain::test
