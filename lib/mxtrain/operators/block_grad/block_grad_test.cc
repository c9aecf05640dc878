// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("BlockGrad passes values") {
  for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{3, 5}, TShape{2, 11, 3, 3}}) {
    OperatorCase c;
    c.name = "BlockGrad " + shape.ToString();
    c.op = "BlockGrad";
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.backward = false;
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
  }
}

TEST_CASE("BlockGrad needs no head gradient and returns none") {
  const auto property = TestRegistry().Create("stop_gradient", {});
  CHECK(!property->NeedsHeadGradient());
  CHECK(!property->HasGradient(0));
}

}  // namespace
}  // namespace mxtrain::test
