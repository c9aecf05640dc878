// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <bit>
#include <cmath>
#include <limits>

#include "mxtrain/operator/imperative.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

OperatorCase CastCase(DType to, const TShape& shape) {
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
    for (DType to : {DType::kFloat32, DType::kFloat64}) RunCase(CastCase(to, shape));
    OperatorCase c = CastCase(DType::kBfloat16, shape);
    c.must_accept = {"simd"};
    c.tolerance = {65536, "half of the last bit of bfloat16, in float epsilons"};
    RunCase(c);
    c.kwargs = {{"dtype", "float16"}};
    c.tolerance.epsilons = 8192;
    RunCase(c);
  }
}

TEST_CASE("Cast rounds to the nearest bfloat16, ties to even, and keeps NaN and infinity") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  OperatorCase c = CastCase(DType::kBfloat16, {9});
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

// The value of a binary16 by its definition.
double HalfValue(uint16_t bits) {
  const int exponent = bits >> 10 & 31, fraction = bits & 1023;
  const double sign = bits >> 15 != 0 ? -1 : 1;
  if (exponent == 31)
    return fraction == 0 ? sign * std::numeric_limits<double>::infinity() : std::nan("");
  if (exponent == 0) return sign * std::ldexp(fraction, -24);
  return sign * std::ldexp(1024 + fraction, exponent - 25);
}
// Whether no other binary16 is nearer to x, and the fraction is even if one is as near. 2^16 takes
// the place of infinity.
bool IsNearest(float x, uint16_t bits) {
  if (std::isnan(x)) return std::isnan(HalfValue(bits));
  const double exact = std::abs(static_cast<double>(x));
  const uint16_t magnitude = bits & 0x7fff;
  if (magnitude > 0x7c00 || std::signbit(x) != (bits >> 15 != 0)) return false;
  const auto distance = [&](int of) {
    const double value = of == 0x7c00 ? 0x1p16 : HalfValue(static_cast<uint16_t>(of));
    return std::isinf(exact) && of == 0x7c00 ? 0.0 : std::abs(exact - value);
  };
  const double here = distance(magnitude);
  for (const int other : {magnitude - 1, magnitude + 1}) {
    if (other < 0 || other > 0x7c00) continue;
    const double there = distance(other);
    if (there < here || (there == here && (magnitude & 1) != 0)) return false;
  }
  return true;
}

template <typename To, typename From>
std::vector<To> CastTo(const std::vector<From>& values) {
  Runtime runtime{RuntimeOptions(), BuiltinOperators()};
  NDArray array(runtime, TShape{static_cast<int64_t>(values.size())}, DTypeOf<From>::value);
  array.CopyFromHost(values.data(), static_cast<int64_t>(values.size() * sizeof(From)));
  const NDArray cast = Invoke("Cast", {&array, 1}, {{"dtype", NameOf(DTypeOf<To>::value)}})[0];
  std::vector<To> result(values.size());
  cast.CopyToHost(result.data(), static_cast<int64_t>(result.size() * sizeof(To)));
  return result;
}

TEST_CASE("Cast of every float16 to float32 is exact") {
  std::vector<float16> halves(65536);
  for (size_t i = 0; i < halves.size(); ++i) halves[i].bits = static_cast<uint16_t>(i);
  const std::vector<float> wide = CastTo<float>(halves);
  int wrong = 0;
  for (size_t i = 0; i < halves.size(); ++i) {
    const double want = HalfValue(halves[i].bits), got = static_cast<double>(wide[i]);
    wrong += std::isnan(want) ? !std::isnan(got)
                              : got != want || std::signbit(got) != std::signbit(want);
  }
  CHECK(wrong == 0);
}

TEST_CASE("Cast rounds every size of float32 to the nearest float16, ties to even") {
  std::vector<float> values;
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 40961)
    values.push_back(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  for (int i = 0; i < 0x7c00; ++i) {  // halves, and what is halfway to the next
    const auto half = static_cast<float>(HalfValue(static_cast<uint16_t>(i))),
               next = i == 0x7bff ? 65536.0f
                                  : static_cast<float>(HalfValue(static_cast<uint16_t>(i + 1))),
               middle = 0.5f * (half + next);
    for (const float x :
         {half, middle, std::nextafter(middle, 0.0f), std::nextafter(middle, next)}) {
      values.push_back(x);
      values.push_back(-x);
    }
  }
  const std::vector<float16> halves = CastTo<float16>(values);
  int wrong = 0;
  for (size_t i = 0; i < values.size(); ++i) wrong += !IsNearest(values[i], halves[i].bits);
  CHECK(wrong == 0);
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
    OperatorCase c = CastCase(type, {8});
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
    OperatorCase c = CastCase(to, {6});
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
