// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("smooth_l1") {
  for (const double sigma : {1.0, 2.0}) {
    OperatorCase c;
    c.name = format("smooth_l1 {}", sigma);
    c.op = "smooth_l1";
    c.kwargs = {{"scalar", format("{}", sigma)}};
    c.shapes = {TShape{2, 3, 3, 5}};
    const double bend = 1 / (sigma * sigma);
    c.inputs = {UniformAwayFrom(-3, 3, {-bend, bend}, 0.02)};
    c.forward = [=](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], [=](double x) {
        return std::fabs(x) < bend ? std::pow(sigma * x, 2) / 2 : std::fabs(x) - bend / 2;
      })};
    };
    c.types = kAllFloatingTypes;
    c.tolerance = {8, "a few multiplications"};
    c.must_accept = {"simple"};
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
