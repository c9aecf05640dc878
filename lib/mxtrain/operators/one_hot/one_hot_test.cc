// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase OneHotCase(const TShape& indices, const Generator& values, int depth, double on,
                        double off, DType type) {
  OperatorCase c;
  c.op = "one_hot";
  c.name = format("one_hot of {}, depth {}, {}", indices.ToString(), depth, NameOf(type));
  c.kwargs = {{"depth", std::to_string(depth)},
              {"on_value", params::Print(on)},
              {"off_value", params::Print(off)},
              {"dtype", NameOf(type)}};
  c.shapes = {indices};
  c.inputs = {values};
  c.forward = [=](const Arrays& in, const Arrays&) {
    Values y;
    for (const double index : in[0]) {
      for (int k = 0; k < depth; ++k) y.push_back(std::trunc(index) == k ? on : off);
    }
    return Arrays{y};
  };
  c.tolerance = {1, "the rounding of the values"};
  c.must_accept = {"ref"};
  return c;
}

TEST_CASE("one_hot") {
  const std::vector<DType> all = {DType::kFloat32,  DType::kFloat64, DType::kFloat16,
                                  DType::kBfloat16, DType::kUint8,   DType::kInt32,
                                  DType::kInt64};
  for (const DType type : all) {
    OperatorCase c = OneHotCase({3, 5}, Labels(7), 7, 1, 0, type);
    c.types = type == DType::kFloat32 ? all : std::vector{DType::kFloat32};
    RunCase(c);
  }
  RunCase(OneHotCase({4}, Labels(3), 3, 0.5, -2.5, DType::kFloat32));
  RunCase(OneHotCase({4}, Labels(3), 3, 7, 3, DType::kUint8));
  RunCase(OneHotCase({1, 1}, Labels(1), 1, 1, 0, DType::kFloat32));
  RunCase(OneHotCase({0, 2}, Labels(3), 3, 1, 0, DType::kFloat32));
  RunCase(OneHotCase({700}, Labels(61), 61, 1, 0, DType::kFloat32));
}

TEST_CASE("one_hot: an index out of range sets nothing") {
  RunCase(OneHotCase({7}, Cycle({-1, 3, 2.9, -0.5, std::nan(""), HUGE_VAL, 1}), 3, 1, 0,
                     DType::kFloat32));
}

TEST_CASE("one_hot: shapes and types") {
  const auto property = TestRegistry().Create("one_hot", {{"depth", "4"}, {"dtype", "int32"}});
  std::vector<TShape> in = {TShape{}}, out = {TShape{2, 3, -1}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{2, 3});
  CHECK(out[0] == TShape{2, 3, 4});
  in = {TShape{2}}, out = {TShape{2, 5}};
  CHECK_THROWS_WITH(property->InferShape(&in, &out, &aux),
                    "one_hot: output has shape [2, 5], but [2, 4] was expected");
  std::vector<DType> in_types = {DType::kUint8}, out_types = {DType::kUnknown}, aux_types;
  CHECK(property->InferType(&in_types, &out_types, &aux_types));
  CHECK(out_types[0] == DType::kInt32);
  CHECK(!property->HasGradient(0));
  CHECK(property->NeedsHeadGradient());
}

}  // namespace
}  // namespace mxtrain::test
