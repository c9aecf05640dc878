// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The elements of [a, b, c] with the given indices, in order.
OperatorCase Case(const char* op, const Kwargs& kwargs, const TShape& shape,
                  const std::vector<int>& i, const std::vector<int>& j, const std::vector<int>& k) {
  OperatorCase c;
  c.op = op;
  c.name = format("{} of {}", op, shape.ToString());
  c.kwargs = kwargs;
  c.shapes = {shape};
  c.inputs = {Uniform(-2, 2)};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (const int a : i) {
      for (const int b : j) {
        for (const int d : k)
          y.push_back(in[0][static_cast<size_t>((a * shape[1] + b) * shape[2] + d)]);
      }
    }
    return Arrays{y};
  };
  c.types = kAllFloatingTypes;
  c.tolerance = {0, "a copy"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("slice_axis") {
  RunCase(Case("slice_axis", {{"axis", "1"}, {"begin", "1"}, {"end", "3"}}, {2, 4, 3}, {0, 1},
               {1, 2}, {0, 1, 2}));
  RunCase(Case("slice_axis", {{"axis", "-1"}, {"begin", "-2"}, {"end", "None"}}, {2, 2, 3}, {0, 1},
               {0, 1}, {1, 2}));
  RunCase(Case("slice_axis", {{"axis", "0"}, {"begin", "0"}, {"end", "-1"}}, {3, 1, 2}, {0, 1}, {0},
               {0, 1}));
  const auto infer = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 4, 3}}, out(1), aux;
    TestRegistry().Create("slice_axis", kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer({{"axis", "1"}, {"begin", "-3"}, {"end", "None"}}) == TShape{2, 3, 3});
  CHECK_THROWS_WITH(
      infer({{"axis", "1"}, {"begin", "2"}, {"end", "5"}}),
      "slice_axis: begin = 2 and end = 5 are not a range of axis 1 of shape [2, 4, 3]");
  CHECK_THROWS_WITH(infer({{"axis", "3"}, {"begin", "0"}, {"end", "1"}}),
                    "slice_axis: axis 3 is out of range for shape [2, 4, 3]");
}

TEST_CASE("reverse") {
  RunCase(Case("reverse", {{"axis", "1"}}, {2, 4, 3}, {0, 1}, {3, 2, 1, 0}, {0, 1, 2}));
  RunCase(Case("flip", {{"axis", "(0, -1)"}}, {2, 2, 3}, {1, 0}, {0, 1}, {2, 1, 0}));
  RunCase(Case("reverse", {{"axis", "0"}}, {0, 2, 2}, {}, {}, {}));
  std::vector<TShape> in = {TShape{2, 4}}, out(1), aux;
  CHECK_THROWS_WITH(
      TestRegistry().Create("reverse", {{"axis", "(1, -1)"}})->InferShape(&in, &out, &aux),
      "reverse: axis -1 is repeated");
}

}  // namespace
}  // namespace mxtrain::test
