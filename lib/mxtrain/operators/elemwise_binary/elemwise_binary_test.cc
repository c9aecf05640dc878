// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of two arrays and of an array and a number, compared with their
// definitions in double.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "mxtrain/operator/imperative.h"
#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

struct BinaryCase {
  const char* name;  // of the operator for equal shapes
  const char* scalar;
  const char* reversed;  // or ""
  BinaryFunction f;
  Generator a, b;
  double scalar_value;
};

double Remainder(double a, double b) {
  return a - b * std::floor(a / b);
}

const std::vector<BinaryCase>& BinaryCases() {
  static const Generator any = Uniform(-2, 2), positive = Uniform(0.5, 2);
  // Distinct values whose order does not change under small changes.
  static const Generator low = Cycle({-1.5, 0.25, 1.75, -0.25, 0.75}),
                         high = Cycle({-1, -0.5, 1.25, 1.5, 0.5, 2, -1.75});
  static const std::vector<BinaryCase> cases = {
      {"elemwise_add", "_plus_scalar", "", [](double a, double b) { return a + b; }, any, any,
       0.75},
      {"elemwise_sub", "_minus_scalar", "_rminus_scalar", [](double a, double b) { return a - b; },
       any, any, 0.75},
      {"elemwise_mul", "_mul_scalar", "", [](double a, double b) { return a * b; }, any, any,
       -1.25},
      {"elemwise_div", "_div_scalar", "_rdiv_scalar", [](double a, double b) { return a / b; }, any,
       positive, 1.5},
      {"_power", "_power_scalar", "_rpower_scalar",
       [](double a, double b) { return std::exp2(b * std::log2(a)); }, positive, any, 1.5},
      {"_maximum", "_maximum_scalar", "", [](double a, double b) { return std::fmax(a, b); }, low,
       high, 0.6},
      {"_minimum", "_minimum_scalar", "", [](double a, double b) { return std::fmin(a, b); }, low,
       high, 0.6},
      {"_mod", "_mod_scalar", "_rmod_scalar", Remainder, Uniform(2.1, 2.4), Uniform(0.85, 0.95),
       0.9},
      {"_hypot", "_hypot_scalar", "", [](double a, double b) { return std::sqrt(a * a + b * b); },
       any, positive, 1.25},
      {"_equal", "_equal_scalar", "", [](double a, double b) { return a == b ? 1.0 : 0.0; }, low,
       high, 0.6},
      {"_not_equal", "_not_equal_scalar", "", [](double a, double b) { return a == b ? 0.0 : 1.0; },
       low, high, 0.6},
      {"_greater", "_greater_scalar", "", [](double a, double b) { return a > b ? 1.0 : 0.0; }, low,
       high, 0.6},
      {"_greater_equal", "_greater_equal_scalar", "",
       [](double a, double b) { return a < b ? 0.0 : 1.0; }, low, high, 0.6},
      {"_lesser", "_lesser_scalar", "", [](double a, double b) { return a < b ? 1.0 : 0.0; }, low,
       high, 0.6},
      {"_lesser_equal", "_lesser_equal_scalar", "",
       [](double a, double b) { return a > b ? 0.0 : 1.0; }, low, high, 0.6},
      {"_logical_and", "_logical_and_scalar", "",
       [](double a, double b) { return a != 0 && b != 0 ? 1.0 : 0.0; }, low, high, 0.6},
      {"_logical_or", "_logical_or_scalar", "",
       [](double a, double b) { return a == 0 && b == 0 ? 0.0 : 1.0; }, low, high, 0.6},
      {"_logical_xor", "_logical_xor_scalar", "",
       [](double a, double b) { return (a == 0) == (b == 0) ? 0.0 : 1.0; }, low, high, 0.6},
  };
  return cases;
}

OperatorCase Base(const std::string& op, const TShape& shape) {
  OperatorCase c;
  c.name = format("{} {}", op, shape.ToString());
  c.op = op;
  c.types = kAllFloatingTypes;
  c.tolerance = {32, "a few operations, one call of the mathematical library"};
  c.must_accept = {"simple"};
  c.shapes = {shape};
  return c;
}

OperatorCase Binary(const BinaryCase& binary, const TShape& shape) {
  OperatorCase c = Base(binary.name, shape);
  c.shapes = {shape, shape};
  c.inputs = {binary.a, binary.b};
  c.forward = [f = binary.f](const Arrays& in, const Arrays&) {
    return Arrays{Apply(in[0], in[1], f)};
  };
  return c;
}

TEST_CASE("functions of two arrays") {
  for (const BinaryCase& binary : BinaryCases()) RunCase(Binary(binary, {2, 7, 3, 2}));
  for (const TShape& shape : {TShape{1}, TShape{0}, TShape{33333}})
    RunCase(Binary(BinaryCases()[2], shape));
  BinaryCase sum = BinaryCases()[0];
  sum.name = "_grad_add";
  RunCase(Binary(sum, {5}));
}

TEST_CASE("functions of an array and a number") {
  for (const BinaryCase& binary : BinaryCases()) {
    OperatorCase c = Base(binary.scalar, {2, 7, 3, 2});
    c.kwargs = {{"scalar", format("{}", binary.scalar_value)}};
    c.inputs = {binary.a};
    c.forward = [f = binary.f, s = binary.scalar_value](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], [=](double x) { return f(x, s); })};
    };
    RunCase(c);
    if (*binary.reversed == 0) continue;
    c.op = c.name = binary.reversed;
    c.inputs = {binary.b};
    c.kwargs = {{"scalar", "2.3"}};
    c.forward = [f = binary.f](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], [=](double x) { return f(2.3, x); })};
    };
    RunCase(c);
  }
}

TEST_CASE("the gradient of a maximum of equal elements goes to the first") {
  OperatorCase c = Binary(BinaryCases()[5], {3});
  REQUIRE(c.op == "_maximum");
  c.inputs = {Constant(0.5), Constant(0.5)};
  c.gradient = [](const Arrays&, const Arrays&, const Arrays& head) {
    return Arrays{head[0], Values(3, 0.0)};
  };
  RunCase(c);
}

TEST_CASE("whole numbers, signs of remainders") {
  OperatorCase c = Binary(BinaryCases()[7], {6});
  REQUIRE(c.op == "_mod");
  c.inputs = {Cycle({7, -7, 7, -7, 5, 0}), Cycle({3, 3, -3, -3, 0, 4})};
  c.forward = [](const Arrays&, const Arrays&) { return Arrays{{1, 2, -2, -1, 0, 0}}; };
  c.types = {DType::kInt32, DType::kInt64, DType::kFloat32};
  c.backward = false;
  RunCase(c);
}

// Results for integers; no double reference could represent them.
class Integers {
 public:
  template <typename T>
  std::vector<T> Of(const char* op, const std::vector<std::vector<T>>& inputs,
                    const Kwargs& kwargs = {}) {
    std::vector<NDArray> in;
    for (const std::vector<T>& values : inputs) in.push_back(Array(values));
    return Values<T>(Invoke(op, in, kwargs)[0]);
  }
  template <typename T>
  NDArray Array(const std::vector<T>& values) {
    NDArray array(runtime_, TShape{static_cast<int64_t>(values.size())}, DTypeOf<T>::value);
    array.CopyFromHost(values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    return array;
  }
  template <typename T>
  static std::vector<T> Values(const NDArray& array) {
    std::vector<T> values(static_cast<size_t>(array.shape().Size()));
    array.CopyToHost(values.data(), static_cast<int64_t>(values.size() * sizeof(T)));
    return values;
  }

 private:
  Runtime runtime_{RuntimeOptions(), BuiltinOperators()};
};

TEST_CASE_FIXTURE(Integers,
                  "integers wrap around, saturate in conversions, and never abort the process") {
  using Long = std::vector<int64_t>;
  const int64_t low = std::numeric_limits<int64_t>::min(),
                high = std::numeric_limits<int64_t>::max();
  CHECK(Of<int64_t>("elemwise_add", {{high, 1}, {1, 2}}) == Long{low, 3});
  CHECK(Of<int64_t>("elemwise_sub", {{low, 1}, {1, 2}}) == Long{high, -1});
  CHECK(Of<int64_t>("elemwise_mul", {{high, low, int64_t{1} << 40}, {2, -1, 1 << 24}}) ==
        Long{-2, low, 0});
  CHECK(Of<int64_t>("elemwise_div", {{low, low, 7, 0, 7, -7}, {-1, 0, 0, 0, 2, 2}}) ==
        Long{low, 0, 0, 0, 3, -3});
  CHECK(Of<int64_t>("_mod", {{low, low, 7, 7, -7, 7}, {-1, 0, 0, high, 3, -3}}) ==
        Long{0, 0, 0, 7, 2, -2});
  CHECK(Of<int64_t>("_power", {{2, -2, 10, 0, 2, 3}, {62, 63, 30, -1, -1, 0}}) ==
        Long{int64_t{1} << 62, low, high, high, 0, 1});
  CHECK(Of<int64_t>("_hypot", {{3, high}, {4, high}}) == Long{5, high});
  CHECK(Of<int64_t>("_maximum", {{low, 3}, {high, -3}}) == Long{high, 3});

  CHECK(Of<int64_t>("_div_scalar", {{low, 7}}, {{"scalar", "-1"}}) == Long{low, -7});
  CHECK(Of<int64_t>("_div_scalar", {{low, 7}}, {{"scalar", "0"}}) == Long{0, 0});
  CHECK(Of<int64_t>("_mod_scalar", {{low, 7}}, {{"scalar", "-1"}}) == Long{0, 0});
  CHECK(Of<int64_t>("_rdiv_scalar", {{0, -1, 2}}, {{"scalar", "-1e300"}}) == Long{0, low, low / 2});
  CHECK(Of<int64_t>("_minus_scalar", {{0, -2}}, {{"scalar", "1e300"}}) == Long{-high, high});
  CHECK(Of<int64_t>("clip", {{low, 5, high}}, {{"a_min", "-1e300"}, {"a_max", "7.9"}}) ==
        Long{low, 5, 7});

  CHECK(Of<int64_t>("abs", {{low, -3}}) == Long{low, 3});
  CHECK(Of<int64_t>("negative", {{low, 3}}) == Long{low, -3});
  CHECK(Of<int64_t>("square", {{high, int64_t{1} << 32}}) == Long{1, 0});
  CHECK(Of<int64_t>("ceil", {{low, 3}}) == Long{low, 3});

  const int32_t least = std::numeric_limits<int32_t>::min();
  CHECK(Of<int32_t>("elemwise_div", {{least, 5}, {-1, 0}}) == std::vector<int32_t>{least, 0});
  CHECK(Of<int32_t>("_mod", {{least, 5}, {-1, 0}}) == std::vector<int32_t>{0, 0});
  CHECK(Of<uint8_t>("elemwise_add", {{200, 1}, {100, 2}}) == std::vector<uint8_t>{44, 3});
  CHECK(Of<uint8_t>("elemwise_sub", {{0, 5}, {1, 2}}) == std::vector<uint8_t>{255, 3});

  for (const char* op : {"_copy", "elemwise_add"}) {
    const NDArray sum = Array<int64_t>({high, 1}), one = Array<int64_t>({1, 1});
    const std::vector<NDArray> in(op == std::string("_copy") ? 1 : 2, one);
    InvokeInto(op, in, {&sum, 1}, OpReqType::kAddTo);
    CHECK(Values<int64_t>(sum)[0] == low + static_cast<int64_t>(in.size()) - 1);
  }
}

TEST_CASE("names of older files") {
  const OperatorRegistry& registry = TestRegistry();
  const std::pair<const char*, const char*> names[] = {{"_plus", "elemwise_add"},
                                                       {"_Plus", "elemwise_add"},
                                                       {"_Minus", "elemwise_sub"},
                                                       {"_Mul", "elemwise_mul"},
                                                       {"_Div", "elemwise_div"},
                                                       {"_Power", "_power"},
                                                       {"_Maximum", "_maximum"},
                                                       {"_PlusScalar", "_plus_scalar"},
                                                       {"_RMinusScalar", "_rminus_scalar"},
                                                       {"_RDivScalar", "_rdiv_scalar"},
                                                       {"_RPowerScalar", "_rpower_scalar"},
                                                       {"_MaximumScalar", "_maximum_scalar"},
                                                       {"_Greater_Equal", "_greater_equal"},
                                                       {"identity", "_copy"}};
  for (const auto& [alias, name] : names) CHECK(registry.CanonicalName(alias) == name);
}

TEST_CASE("the larger and the smaller of a number and NaN are NaN") {
  const double nan = std::nan("");
  for (const char* op : {"_maximum", "_minimum", "broadcast_maximum", "broadcast_minimum"}) {
    OperatorCase c = Base(op, {4});
    const bool largest = std::string(op).ends_with("maximum");
    c.shapes = {{4}, {4}};
    c.inputs = {Cycle({nan, 1, nan, 3}), Cycle({1, nan, nan, 2})};
    c.forward = [&](const Arrays&, const Arrays&) {
      return Arrays{{nan, nan, nan, largest ? 3.0 : 2.0}};
    };
    c.backward = false;
    RunCase(c);
  }
  for (const char* op : {"_maximum_scalar", "_minimum_scalar"}) {
    OperatorCase c = Base(op, {2});
    const bool largest = std::string(op).starts_with("_maximum");
    c.inputs = {Cycle({nan, 0.5})};
    c.kwargs = {{"scalar", "1"}};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{{nan, largest ? 1.0 : 0.5}}; };
    c.backward = false;
    RunCase(c);
    c.inputs = {Constant(0.5)};
    c.kwargs = {{"scalar", "nan"}};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{{nan, nan}}; };
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
