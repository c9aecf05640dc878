// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase WhereCase(const TShape& condition, const TShape& x, const Generator& conditions,
                       DType condition_type, DType type) {
  OperatorCase c;
  c.op = "where";
  c.name = format("where {} {} of {} {}", NameOf(condition_type), condition.ToString(),
                  NameOf(type), x.ToString());
  c.shapes = {condition, x, x};
  c.inputs = {conditions, Uniform(0, 9)};
  c.input_types = {condition_type, type, type};
  c.types = {type};
  const size_t length =
      condition.Size() == 0 ? 1 : static_cast<size_t>(x.Size() / condition.Size());
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y(in[1].size());
    for (size_t i = 0; i < y.size(); ++i) y[i] = in[0][i / length] != 0 ? in[1][i] : in[2][i];
    return Arrays{y};
  };
  c.gradient = [=](const Arrays& in, const Arrays&, const Arrays& head) {
    Values dx(in[1].size()), dy(in[1].size());
    for (size_t i = 0; i < dx.size(); ++i) (in[0][i / length] != 0 ? dx : dy)[i] = head[0][i];
    return Arrays{{}, dx, dy};
  };
  c.tolerance = {0, "copies"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("where") {
  const Generator some = Cycle({0, 1, 2, 0, 0, 1, 0});
  for (const DType type : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16,
                           DType::kUint8, DType::kInt32, DType::kInt64}) {
    RunCase(WhereCase({3, 5}, {3, 5}, some, DType::kFloat32, type));
    RunCase(WhereCase({3}, {3, 5}, some, DType::kFloat32, type));
    RunCase(WhereCase({3, 5}, {3, 5}, some, type, DType::kFloat32));
    RunCase(WhereCase({3}, {3, 2, 2}, some, type, DType::kFloat32));
  }
  // Not zero: NaN, and numbers below 1.
  const Generator wild = Cycle({0, -0.0, std::nan(""), 0.25, -0.5, HUGE_VAL, 0});
  RunCase(WhereCase({2, 7}, {2, 7}, wild, DType::kFloat32, DType::kFloat32));
  RunCase(WhereCase({7}, {7, 3}, wild, DType::kFloat64, DType::kFloat32));
  RunCase(WhereCase({4}, {4}, some, DType::kFloat32, DType::kFloat32));
  RunCase(WhereCase({1, 1}, {1, 1}, some, DType::kFloat32, DType::kFloat32));
  RunCase(WhereCase({0, 3}, {0, 3}, some, DType::kFloat32, DType::kFloat32));
  RunCase(WhereCase({3}, {3, 0}, some, DType::kFloat32, DType::kFloat32));
  // Blocks and several threads.
  RunCase(WhereCase({3, 15001}, {3, 15001}, some, DType::kUint8, DType::kFloat32));
  RunCase(WhereCase({300}, {300, 131}, some, DType::kInt32, DType::kFloat32));
}

TEST_CASE("where: shapes and types") {
  const auto property = TestRegistry().Create("where", {});
  const auto infer = [&](std::vector<TShape> in, TShape output) {
    std::vector<TShape> out = {output}, aux;
    property->InferShape(&in, &out, &aux);
    in.push_back(out[0]);
    return in;
  };
  CHECK(infer({TShape{2, 3}, TShape{}, TShape{2, -1}}, TShape{}) == std::vector(4, TShape{2, 3}));
  CHECK(infer({TShape{-1}, TShape{}, TShape{}}, TShape{4, 3})[0] == TShape{4});
  CHECK(infer({TShape{4}, TShape{-1, 3}, TShape{}}, TShape{})[3] == TShape{4, 3});
  CHECK(infer({TShape{4}, TShape{}, TShape{}}, TShape{})[0] == TShape{4});
  CHECK_THROWS_WITH(infer({TShape{3}, TShape{2, 3}, TShape{}}, TShape{}),
                    "where: condition has shape [3], but [2] was expected");
  CHECK_THROWS_WITH(infer({TShape{2, 4}, TShape{2, 3}, TShape{}}, TShape{}),
                    "where: condition has shape [2, 4], but [2, 3] was expected");
  CHECK_THROWS_WITH(infer({TShape{2}, TShape{2, 3}, TShape{2, 4}}, TShape{}),
                    "where: y has shape [2, 4], but [2, 3] was expected");

  std::vector<DType> in = {DType::kUint8, DType::kUnknown, DType::kFloat16},
                     out = {DType::kUnknown}, aux;
  CHECK(property->InferType(&in, &out, &aux));
  CHECK(in[1] == DType::kFloat16);
  CHECK(out[0] == DType::kFloat16);
  in[1] = DType::kFloat32;
  CHECK_THROWS_WITH(property->InferType(&in, &out, &aux),
                    doctest::Contains("where takes arrays of one type"));
  CHECK(!property->HasGradient(0));
}

}  // namespace
}  // namespace mxtrain::test
