// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

// The offset in an array of `shape` of the sub-array at point `n`.
size_t GatherPlace(const TShape& shape, const Values& indices, int64_t axes, int64_t points,
                   int64_t n) {
  int64_t place = 0;
  for (int a = 0; a < axes; ++a) {
    auto index = static_cast<int64_t>(indices[static_cast<size_t>(a * points + n)]);
    if (index < 0) index += shape[a];
    place += index * shape.Product(a + 1, shape.ndim());
  }
  return static_cast<size_t>(place);
}

OperatorCase Gather(const TShape& data, const TShape& indices, const Values& values) {
  OperatorCase c;
  c.op = "gather_nd";
  c.name = format("gather_nd of {} by {}", data.ToString(), indices.ToString());
  c.shapes = {data, indices};
  c.inputs = {Uniform(0, 9), Cycle(values)};
  c.input_types = {DType::kUnknown, DType::kFloat32};
  const int64_t axes = indices[0], points = indices.Product(1, indices.ndim());
  const auto length = static_cast<size_t>(data.Product(static_cast<int>(axes), data.ndim()));
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (int64_t n = 0; n < points; ++n) {
      for (size_t k = 0; k < length; ++k)
        y.push_back(in[0][GatherPlace(data, in[1], axes, points, n) + k]);
    }
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g(in[0].size());
    for (int64_t n = 0; n < points; ++n) {
      for (size_t k = 0; k < length; ++k)
        g[GatherPlace(data, in[1], axes, points, n) + k] +=
            head[0][static_cast<size_t>(n) * length + k];
    }
    return Arrays{g, {}};
  };
  c.tolerance = {256, "sums of up to some dozens of numbers"};
  c.must_accept = {"ref"};
  return c;
}

OperatorCase Scatter(const TShape& data, const TShape& indices, const TShape& shape,
                     const Values& values) {
  OperatorCase c;
  c.op = "scatter_nd";
  c.name = format("scatter_nd of {} to {}", data.ToString(), shape.ToString());
  c.kwargs = {{"shape", shape.ToTuple()}};
  c.shapes = {data, indices};
  c.inputs = {Uniform(1, 9), Cycle(values)};
  c.input_types = {DType::kUnknown, DType::kFloat32};
  const int64_t axes = indices[0], points = indices.Product(1, indices.ndim());
  const auto length = static_cast<size_t>(shape.Product(static_cast<int>(axes), shape.ndim()));
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y(static_cast<size_t>(shape.Size()));
    for (int64_t n = 0; n < points; ++n) {
      for (size_t k = 0; k < length; ++k)
        y[GatherPlace(shape, in[1], axes, points, n) + k] =
            in[0][static_cast<size_t>(n) * length + k];
    }
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values g;
    for (int64_t n = 0; n < points; ++n) {
      for (size_t k = 0; k < length; ++k)
        g.push_back(head[0][GatherPlace(shape, in[1], axes, points, n) + k]);
    }
    return Arrays{g, {}};
  };
  c.tolerance = {0, "copies"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("gather_nd") {
  OperatorCase c = Gather({3, 5, 2}, {2, 4}, {0, 2, 0, -1, 4, 1, 4, 0.9});
  c.types = kAllTypes;
  RunCase(c);
  c.types = {DType::kFloat32};
  for (const DType type : {DType::kFloat64, DType::kFloat16, DType::kInt32, DType::kInt64}) {
    c.input_types[1] = type;
    RunCase(c);
  }
  RunCase(Gather({5, 3}, {1, 2, 3}, {4, 0, 0, -5, 2, 1}));
  RunCase(Gather({3, 4}, {2, 3}, {0, 1, 2, 3, 2, 1}));
  RunCase(Gather({1}, {1, 1}, {0}));
  RunCase(Gather({4, 2}, {1, 0}, {0}));
  RunCase(Gather({4, 0}, {1, 2}, {0, 1}));
  RunCase(Gather({30, 20, 40}, {2, 700}, {0, 19, 7, 18, -1, 3, 13, 5}));
}

TEST_CASE("scatter_nd") {
  OperatorCase c = Scatter({4, 2}, {2, 4}, {3, 5, 2}, {0, 2, 0, -1, 4, 1, 3, 0.9});
  c.types = kAllTypes;
  RunCase(c);
  RunCase(Scatter({3}, {2, 3}, {3, 4}, {0, 1, 2, 3, 2, 1}));
  // The last of equal points is kept.
  RunCase(Scatter({6, 3}, {1, 6}, {4, 3}, {2, 0, 2, 3, 2, 0}));
  RunCase(Scatter({0, 3}, {1, 0}, {4, 3}, {0}));
  RunCase(Scatter({700, 40}, {1, 700}, {900, 40}, {1, 5, 2, 899, 3, 4, 77}));
}

TEST_CASE("gather_nd and scatter_nd: indices out of range") {
  for (OperatorCase c :
       {Gather({3, 5}, {2, 2}, {0, 2, 4, 5}), Scatter({2}, {2, 2}, {3, 5}, {0, 2, 4, 5})}) {
    c.check = [](const CaseResult&) { return std::vector<std::string>(); };
    CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                         (c.op + ": index 5 at place 1 is not in [-5, 5)").c_str(), Error);
    c.inputs[1] = Cycle({-4, 0, 0, 0});
    CHECK_THROWS_WITH_AS(ExamineCase(c, TestRegistry(), TestBackend()),
                         (c.op + ": index -4 at place 0 is not in [-3, 3)").c_str(), Error);
  }
}

TEST_CASE("gather_nd and scatter_nd: shapes") {
  const auto infer = [](const char* op, const Kwargs& kwargs, std::vector<TShape> in,
                        TShape output) {
    std::vector<TShape> out = {output}, aux;
    TestRegistry().Create(op, kwargs)->InferShape(&in, &out, &aux);
    return std::vector<TShape>{in[0], in[1], out[0]};
  };
  CHECK(infer("gather_nd", {}, {TShape{3, 5, -1}, TShape{2, -1}}, TShape{7, 4}) ==
        std::vector{TShape{3, 5, 4}, TShape{2, 7}, TShape{7, 4}});
  CHECK(infer("scatter_nd", {{"shape", "(3, 5, 4)"}}, {TShape{}, TShape{2, 7}}, TShape{}) ==
        std::vector{TShape{7, 4}, TShape{2, 7}, TShape{3, 5, 4}});
  CHECK_THROWS_WITH(infer("gather_nd", {}, {TShape{3, 5}, TShape{2}}, TShape{}),
                    "gather_nd: indices has shape [2]; expected [axes, points...]");
  CHECK_THROWS_WITH(infer("gather_nd", {}, {TShape{3, 5}, TShape{3, 2}}, TShape{}),
                    doctest::Contains("a point has 3 coordinates, but the array has shape [3, 5]"));
  CHECK_THROWS_WITH(infer("gather_nd", {}, {TShape{3, 0}, TShape{2, 2}}, TShape{}),
                    "gather_nd: the array has shape [3, 0], which has no elements at points");
  CHECK_THROWS_WITH(
      infer("scatter_nd", {{"shape", "(3, 5)"}}, {TShape{3, 4}, TShape{1, 3}}, TShape{}),
      "scatter_nd: data has shape [3, 4], but [3, 5] was expected");
  CHECK_THROWS_WITH(TestRegistry().Create("scatter_nd", {{"shape", "()"}}),
                    doctest::Contains("shape = (): expected at least one axis"));
  CHECK_THROWS_WITH(TestRegistry().Create("scatter_nd", {{"shape", "(2, -1)"}}),
                    doctest::Contains("expected lengths of 0 or more"));
}

}  // namespace
}  // namespace mxtrain::test
