#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("BlockGrad passes values and stops gradients") {
  for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{3, 5}, TShape{2, 11, 3, 3}}) {
    OperatorCase c;
    c.name = "BlockGrad " + shape.ToString();
    c.op = "BlockGrad";
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.gradient = [](const Arrays& in, const Arrays&, const Arrays&) { return Arrays{Values(in[0].size(), 0.0)}; };
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
  }
}

TEST_CASE("BlockGrad needs no head gradient") {
  CHECK(!TestRegistry().Create("stop_gradient", {})->NeedsHeadGradient());
}

}  // namespace
}  // namespace mxtrain::test
