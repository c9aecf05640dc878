// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("Reshape keeps every element in its place") {
  for (const auto& [shape, codes] : {std::pair<TShape, std::string>{{2, 3, 4}, "(0,-1)"},
                                     {{2, 3, 4, 5}, "(-3,-2)"},
                                     {{6}, "(-4,2,-1)"},
                                     {{0, 3}, "(0,3,1)"}}) {
    OperatorCase c;
    c.name = "Reshape " + shape.ToString() + " by " + codes;
    c.op = "Reshape";
    c.kwargs = {{"shape", codes}};
    c.shapes = {shape};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
  }
}

struct ReshapeResult {
  bool known;
  TShape in, out;
};

ReshapeResult InferReshape(const Kwargs& kwargs, const TShape& in, const TShape& out = {}) {
  std::vector<TShape> ins = {in}, outs = {out}, aux;
  const bool known = TestRegistry().Create("Reshape", kwargs)->InferShape(&ins, &outs, &aux);
  return {known, ins[0], outs[0]};
}
TShape Of(const std::string& codes, const TShape& in, bool reverse = false) {
  return InferReshape({{"shape", codes}, {"reverse", reverse ? "True" : "False"}}, in).out;
}

TEST_CASE("Reshape: codes") {
  CHECK(Of("(0,-1)", {2, 3, 4}) == TShape{2, 12});
  CHECK(Of("(-3,0)", {2, 3, 4}) == TShape{6, 4});
  CHECK(Of("(-4,1,2,-2)", {2, 3, 4}) == TShape{1, 2, 3, 4});
  CHECK(Of("(4,0,-1)", {2, 3, 4}) == TShape{4, 3, 2});
  CHECK(Of("(-1,)", {2, 3, 4}) == TShape{24});
  CHECK(Of("(2,-4,-1,3,-2)", {2, 6, 5}) == TShape{2, 2, 3, 5});
  CHECK(Of("(-2,1,1)", {2, 3}) == TShape{2, 3, 1, 1});
}

TEST_CASE("Reshape: codes from the right") {
  CHECK(Of("(-1,0)", {10, 5, 4}, false) == TShape{40, 5});
  CHECK(Of("(-1,0)", {10, 5, 4}, true) == TShape{50, 4});
  CHECK(Of("(-1,-4,2,3)", {5, 6}, true) == TShape{5, 2, 3});
}

TEST_CASE("Reshape: deprecated parameters") {
  CHECK(InferReshape({{"shape", "()"}, {"target_shape", "(4,0)"}}, {2, 3, 4}).out == TShape{4, 6});
  CHECK(InferReshape({{"target_shape", "(0,0)"}, {"keep_highest", "True"}}, {2, 3, 4}).out ==
        TShape{2, 12});
  CHECK_THROWS_WITH_AS(InferReshape({}, {2, 3}), doctest::Contains("needs the parameter 'shape'"),
                       Error);
}

TEST_CASE("Reshape: unknown lengths") {
  const ReshapeResult batch = InferReshape({{"shape", "(0,-1)"}}, {-1, 3, 4}, {8, -1});
  CHECK(batch.known);
  CHECK(batch.in == TShape{8, 3, 4});
  CHECK(batch.out == TShape{8, 12});
  const ReshapeResult whole = InferReshape({{"shape", "(-3,0)"}}, {-1, 3, 4}, {24, 4});
  CHECK(whole.known);
  CHECK(whole.in == TShape{8, 3, 4});
  CHECK(!InferReshape({{"shape", "(0,-1)"}}, {-1, 3, 4}).known);
  CHECK(!InferReshape({{"shape", "(0,-1)"}}, {}).known);
}

TEST_CASE("Reshape: invalid shapes") {
  CHECK_THROWS_WITH_AS(Of("(5,-1)", {2, 3, 4}),
                       "Reshape: shape = (5, -1) does not divide the 24 elements of the input",
                       Error);
  CHECK_THROWS_WITH_AS(Of("(-1,-1)", {2, 3, 4}), doctest::Contains("has -1 twice"), Error);
  CHECK_THROWS_WITH_AS(Of("(5,5)", {2, 3, 4}), doctest::Contains("a different number of elements"),
                       Error);
  CHECK_THROWS_WITH_AS(Of("(0,0,0,0)", {2, 3, 4}), doctest::Contains("more axes than the 3"),
                       Error);
  CHECK_THROWS_WITH_AS(Of("(-4,5,-1,-2)", {2, 3, 4}), doctest::Contains("cannot be split this way"),
                       Error);
  CHECK_THROWS_WITH_AS(Of("(-5,)", {2, 3, 4}), doctest::Contains("the codes are"), Error);
}

}  // namespace
}  // namespace mxtrain::test
