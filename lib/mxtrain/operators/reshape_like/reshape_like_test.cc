// SPDX-License-Identifier: Apache-2.0
// reshape_like, and the arrays of shapes: shape_array and size_array.
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

TEST_CASE("reshape_like") {
  const auto examine = [](const Kwargs& kwargs, const TShape& lhs, const TShape& rhs,
                          const TShape& expected) {
    OperatorCase c;
    c.op = "reshape_like";
    c.name = format("reshape_like {} {}", lhs.ToString(), rhs.ToString());
    c.kwargs = kwargs;
    c.shapes = {lhs, rhs};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
    c.types = kAllFloatingTypes;
    c.tolerance = {0, "a copy"};
    RunCase(c);
    std::vector<TShape> in = {lhs, rhs}, out(1), aux;
    CHECK(TestRegistry().Create("reshape_like", kwargs)->InferShape(&in, &out, &aux));
    CHECK(out[0] == expected);
  };
  examine({}, {2, 6}, {3, 4}, {3, 4});
  examine({{"lhs_begin", "0"}, {"lhs_end", "1"}, {"rhs_begin", "1"}, {"rhs_end", "3"}}, {6, 5},
          {7, 2, 3, 9}, {2, 3, 5});
  examine({{"lhs_begin", "-1"}, {"rhs_begin", "-2"}}, {5, 6}, {4, 2, 3}, {5, 2, 3});
  examine({}, {0, 6}, {3, 0}, {3, 0});
}

TEST_CASE("reshape_like: errors") {
  const auto infer = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 3}, TShape{3, 3}}, out(1), aux;
    TestRegistry().Create("reshape_like", kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(
      infer({}),
      "reshape_like: lhs has shape [2, 3], which does not have as many elements as [3, 3]");
  CHECK_THROWS_WITH(infer({{"rhs_end", "3"}}),
                    "reshape_like: rhs_begin = None and rhs_end = 3 are not a range of axes of "
                    "shape [3, 3]");
}

TEST_CASE("shape_array and size_array") {
  for (const bool size : {false, true}) {
    OperatorCase c;
    c.op = c.name = size ? "size_array" : "shape_array";
    c.shapes = {{2, 1, 5}};
    c.inputs = {Uniform(-2, 2)};
    c.forward = [size](const Arrays&, const Arrays&) {
      return Arrays{size ? Values{10} : Values{2, 1, 5}};
    };
    c.backward = false;
    c.tolerance = {0, "integers"};
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
