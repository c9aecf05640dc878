// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase Case(DType to, const TShape& shape) {
  OperatorCase c;
  c.name = format("cast to {}", NameOf(to));
  c.op = "Cast";
  c.kwargs = {{"dtype", NameOf(to)}};
  c.shapes = {shape};
  c.inputs = {Uniform(-100, 100)};
  c.forward = [](const Arrays& in, const Arrays&) { return Arrays{in[0]}; };
  c.gradient = [](const Arrays&, const Arrays&, const Arrays& head) { return Arrays{head[0]}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {8, "one rounding to the narrower type"};
  return c;
}

TEST_CASE("Cast between floating types rounds once, and so does its gradient") {
  for (const TShape& shape :
       {TShape{1}, TShape{0, 3}, TShape{3, 5, 7}, TShape{2, 19, 3, 3}, TShape{20011}}) {
    for (DType to : {DType::kFloat32, DType::kFloat64}) RunCase(Case(to, shape));
    OperatorCase c = Case(DType::kBfloat16, shape);
    c.must_accept = {"simd"};
    c.tolerance = {65536, "half of the last bit of bfloat16, in float epsilons"};
    RunCase(c);
    c.kwargs = {{"dtype", "float16"}};
    c.must_accept = {};
    c.tolerance.epsilons = 8192;
    RunCase(c);
  }
}

TEST_CASE("Cast rounds to the nearest bfloat16, ties to even, and keeps NaN and infinity") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  OperatorCase c = Case(DType::kBfloat16, {9});
  c.types = {DType::kFloat32};
  c.inputs = {
      Cycle({1, 1 + 0x1p-8, 1 + 3 * 0x1p-8, 1 + 0x1p-8 + 0x1p-20, -0.0, inf, -inf, nan, 3.4e38})};
  c.forward = [&](const Arrays&, const Arrays&) {
    return Arrays{Values{1, 1, 1 + 0x1p-6, 1 + 0x1p-7, -0.0, inf, -inf, nan, inf}};
  };
  c.tolerance = {0, "exact"};
  c.backward = false;
  RunCase(c);
}

TEST_CASE("Cast to whole numbers truncates fractions and saturates") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const Values x{1.75, -1.75, 255.5, 300, -3, inf, -inf, nan};
  const std::vector<std::pair<DType, Values>> expected = {
      {DType::kUint8, {1, 0, 255, 255, 0, 255, 0, 0}},
      {DType::kInt32, {1, -1, 255, 300, -3, 2147483647, -2147483648.0, 0}},
      {DType::kInt64, {1, -1, 255, 300, -3, 0x1p63, -0x1p63, 0}}};
  for (const auto& [type, y] : expected) {
    OperatorCase c = Case(type, {8});
    c.types = {DType::kFloat32, DType::kFloat64};
    c.inputs = {Cycle(x)};
    c.forward = [&y = y](const Arrays&, const Arrays&) { return Arrays{y}; };
    c.backward = false;
    c.tolerance = {0, "exact"};
    RunCase(c);
  }
}

TEST_CASE("Cast of whole numbers") {
  for (DType to : {DType::kFloat32, DType::kBfloat16, DType::kFloat16, DType::kInt64}) {
    OperatorCase c = Case(to, {6});
    c.types = {DType::kUint8, DType::kInt32, DType::kInt64};
    c.inputs = {Cycle({0, 1, 2, 7, 100, 128})};
    c.backward = false;
    c.tolerance = {0, "exact"};
    RunCase(c);
  }
}

TEST_CASE("Cast: types") {
  const auto cast = TestRegistry().Create("cast", {{"dtype", "float16"}});
  CHECK(cast->TypeString() == "Cast");
  std::vector<DType> in{DType::kUnknown}, out{DType::kUnknown}, aux;
  CHECK_FALSE(cast->InferType(&in, &out, &aux));
  CHECK(out[0] == DType::kFloat16);
  in = {DType::kInt32};
  CHECK(cast->InferType(&in, &out, &aux));
  out = {DType::kFloat32};
  CHECK_THROWS_WITH_AS(cast->InferType(&in, &out, &aux),
                       doctest::Contains("the output is float32, but dtype = float16"), Error);
  CHECK_THROWS_WITH_AS(TestRegistry().Create("Cast", {}), doctest::Contains("dtype"), Error);
}

}  // namespace
}  // namespace mxtrain::test
