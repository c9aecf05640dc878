// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <numeric>

#include "tests/support/case_parts.h"
#include "tests/support/moved_gradient.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The elements of [a, b, c] with the given indices, in order.
OperatorCase SliceCase(const char* op, const Kwargs& kwargs, const TShape& shape,
                       const std::vector<int>& i, const std::vector<int>& j,
                       const std::vector<int>& k) {
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
  c.must_accept = {"ref"};
  if (shape.Size() > kLarge) {
    c.types = {DType::kFloat32};
    UseMovedGradient(&c);
  }
  return c;
}

TEST_CASE("slice_axis") {
  RunCase(SliceCase("slice_axis", {{"axis", "1"}, {"begin", "1"}, {"end", "3"}}, {2, 4, 3}, {0, 1},
                    {1, 2}, {0, 1, 2}));
  RunCase(SliceCase("slice_axis", {{"axis", "-1"}, {"begin", "-2"}, {"end", "None"}}, {2, 2, 3},
                    {0, 1}, {0, 1}, {1, 2}));
  RunCase(SliceCase("slice_axis", {{"axis", "0"}, {"begin", "0"}, {"end", "-1"}}, {3, 1, 2}, {0, 1},
                    {0}, {0, 1}));
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

TEST_CASE("slice") {
  RunCase(SliceCase("slice", {{"begin", "(0, 1)"}, {"end", "(2, 3)"}}, {2, 4, 3}, {0, 1}, {1, 2},
                    {0, 1, 2}));
  RunCase(SliceCase(
      "slice",
      {{"begin", "(None, -1, 0)"}, {"end", "(None, None, -1)"}, {"step", "(-1, -2, None)"}},
      {3, 5, 3}, {2, 1, 0}, {4, 2, 0}, {0, 1}));
  // Beyond the ends; a step longer than the axis; MXNet's old name and a shape of Python 2.
  RunCase(SliceCase("slice", {{"begin", "(-9, 3)"}, {"end", "(9, -9)"}, {"step", "(7, -1)"}},
                    {3, 4, 2}, {0}, {3, 2, 1, 0}, {0, 1}));
  RunCase(
      SliceCase("crop", {{"begin", "(1L, 0L)"}, {"end", "(2L, 2L)"}}, {2, 4, 1}, {1}, {0, 1}, {0}));
  RunCase(SliceCase("slice", {{"begin", "()"}, {"end", "()"}}, {2, 1, 3}, {0, 1}, {0}, {0, 1, 2}));
  RunCase(
      SliceCase("slice", {{"begin", "(0, 0)"}, {"end", "(0, 1)"}}, {0, 2, 3}, {}, {0}, {0, 1, 2}));
  std::vector<int> i(40), j(31);
  std::iota(i.begin(), i.end(), 1);
  for (int k = 0; k < 31; ++k) j[static_cast<size_t>(k)] = 60 - 2 * k;
  RunCase(SliceCase(
      "slice", {{"begin", "(1, None, 2)"}, {"end", "(41, None, None)"}, {"step", "(1, -2, 1)"}},
      {42, 61, 35}, i, j, [] {
        std::vector<int> k(33);
        std::iota(k.begin(), k.end(), 2);
        return k;
      }()));
}

TEST_CASE("slice: what is not a slice") {
  const auto infer = [](const Kwargs& kwargs) {
    std::vector<TShape> in = {TShape{2, 4}}, out(1), aux;
    TestRegistry().Create("slice", kwargs)->InferShape(&in, &out, &aux);
    return out[0];
  };
  CHECK(infer({{"begin", "(0,)"}, {"end", "(None,)"}, {"step", "(2,)"}}) == TShape{1, 4});
  CHECK_THROWS_WITH(infer({{"begin", "(0, 0, 0)"}, {"end", "(1, 1, 1)"}}),
                    "slice: begin = (0, 0, 0) has more entries than data of shape [2, 4] has axes");
  CHECK_THROWS_WITH(infer({{"begin", "(0, 3)"}, {"end", "(2, 3)"}}),
                    "slice: begin = 3, end = 3 and step = 1 leave nothing of axis 1 of shape "
                    "[2, 4]");
  CHECK_THROWS_WITH(
      infer({{"begin", "(0, 3)"}, {"end", "(2,)"}}),
      "slice: begin = (0, 3), end = (2) and step = () must have equally many entries");
  CHECK_THROWS_WITH(infer({{"begin", "0"}, {"end", "1"}, {"step", "0"}}),
                    "slice: step = (0) must not contain 0");
  CHECK_THROWS_WITH(infer({{"begin", "(x, 1)"}, {"end", "(1, 1)"}}),
                    "slice: begin = (x, 1): 'x' is neither an integer nor None");
}

TEST_CASE("slice_like") {
  OperatorCase c = SliceCase("slice_like", {}, {3, 4, 5}, {0, 1}, {0, 1, 2, 3}, {0, 1, 2});
  c.shapes.push_back({2, 4, 3});
  RunCase(c);
  c = SliceCase("slice_like", {{"axes", "(0, -1)"}}, {3, 4, 5}, {0}, {0, 1, 2, 3}, {0, 1, 2, 3});
  c.shapes.push_back({1, 9, 4});
  RunCase(c);
  c = SliceCase("slice_like", {{"axes", "(1,)"}}, {2, 4, 3}, {0, 1}, {}, {0, 1, 2});
  c.shapes.push_back({2, 0});
  RunCase(c);
  const auto infer = [](const Kwargs& kwargs, const TShape& like) {
    std::vector<TShape> in = {TShape{2, 4}, like}, out(1), aux;
    TestRegistry().Create("slice_like", kwargs)->InferShape(&in, &out, &aux);
  };
  CHECK_THROWS_WITH(infer({}, {2, 5}),
                    "slice_like: axis 1 of data of shape [2, 4] is shorter than that of shape_like "
                    "of shape [2, 5]");
  CHECK_THROWS_WITH(infer({}, {2}),
                    "slice_like: data [2, 4] and shape_like [2] must have equally many axes; "
                    "otherwise give axes");
  CHECK_THROWS_WITH(infer({{"axes", "(1,)"}}, {2}),
                    "slice_like: axis 1 is out of range for shape [2]");
}

}  // namespace
}  // namespace mxtrain::test
