// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("hard_sigmoid") {
  OperatorCase c;
  c.name = c.op = "hard_sigmoid";
  c.kwargs = {{"alpha", "0.5"}};
  c.shapes = {TShape{2, 3, 3, 5}};
  c.inputs = {UniformAwayFrom(-3, 3, {-1, 1}, 0.05)};
  c.forward = [](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], [](double x) { return std::clamp(0.5 * x + 0.5, 0.0, 1.0); })};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {4, "a multiplication and an addition"};
  c.must_accept = {"simple"};
  RunCase(c);
}

}  // namespace
}  // namespace mxtrain::test
