// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("Flatten keeps every element in its place") {
  for (const TShape& shape :
       {TShape{5}, TShape{1, 1}, TShape{0, 3}, TShape{3, 5, 7}, TShape{2, 11, 3, 3}}) {
    OperatorCase c;
    c.name = "Flatten " + shape.ToString();
    c.op = "Flatten";
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
  }
}

bool InferFlatten(TShape* in, TShape* out) {
  std::vector<TShape> ins = {*in}, outs = {*out}, aux;
  const bool known = TestRegistry().Create("Flatten", {})->InferShape(&ins, &outs, &aux);
  *in = ins[0];
  *out = outs[0];
  return known;
}

TEST_CASE("Flatten: shapes in both directions") {
  TShape in{4, 3, 5}, out;
  CHECK(InferFlatten(&in, &out));
  CHECK(out == TShape{4, 15});
  in = {-1, 3, 5}, out = {4, -1};
  CHECK(InferFlatten(&in, &out));
  CHECK(in == TShape{4, 3, 5});
  in = {-1, 3, -1}, out = {4, 15};
  CHECK(InferFlatten(&in, &out));
  CHECK(in == TShape{4, 3, 5});
  in = {7}, out = {};
  CHECK(InferFlatten(&in, &out));
  CHECK(out == TShape{7, 1});
  in = {}, out = {};
  CHECK(!InferFlatten(&in, &out));
  in = {4, 3, 5}, out = {4, 14};
  CHECK_THROWS_WITH_AS(InferFlatten(&in, &out),
                       "Flatten: output has shape [4, 15], but [4, 14] was expected", Error);
}

TEST_CASE("Flatten is an alias of its input") {
  const auto property = TestRegistry().Create("flatten", {});
  CHECK(property->ForwardIdentityOption() == std::vector<InplacePair>{{0, 0}});
  CHECK(property->BackwardIdentityOption() == std::vector<InplacePair>{{0, 0}});
}

}  // namespace
}  // namespace mxtrain::test
