// SPDX-License-Identifier: Apache-2.0
// The references follow the definitions, in double; gradients are central differences.
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

using UnaryReference = double (*)(double);

struct UnaryCase {
  const char* op;
  UnaryReference f;
  Generator inputs;
  bool integers = false;
  double epsilons = 16;
};

double Rint(double x) {
  const double r = std::nearbyint(x);
  return std::abs(x - std::trunc(x)) == 0.5 ? std::floor(x) : r;
}
// By bisection: erf is monotone.
double InverseErf(double y) {
  double low = -6, high = 6;
  for (int i = 0; i < 200; ++i) (std::erf((low + high) / 2) < y ? low : high) = (low + high) / 2;
  return (low + high) / 2;
}

// Gauss's integral of (e^-t / t - e^-xt / (1 - e^-t)) over t > 0, for x > 0, in steps of log t.
double DigammaIntegral(double x) {
  constexpr double kStep = 0.02;
  double sum = 0;
  for (int i = -1800; i <= 325; ++i) {
    const double t = std::exp(kStep * i);
    sum += std::exp(-t) + t * std::exp(-x * t) / std::expm1(-t);
  }
  return kStep * sum;
}

const std::vector<UnaryCase>& UnaryCases() {
  static const Generator any = Uniform(-2, 2), positive = Uniform(0.3, 3),
                         inside = Uniform(-0.9, 0.9);
  static const Generator steps =
      UniformAwayFrom(-3, 3, {-3, -2.5, -2, -1.5, -1, -0.5, 0, 0.5, 1, 1.5, 2, 2.5, 3}, 0.02);
  static const Generator nonzero = UniformAwayFrom(-2, 2, {0}, 0.1);
  static const std::vector<UnaryCase> cases = {
      {"_copy", [](double x) { return x; }, any, true},
      {"abs", [](double x) { return std::fabs(x); }, nonzero, true},
      {"sign", [](double x) { return x > 0   ? 1.0
                                     : x < 0 ? -1.0
                                             : 0.0; }, nonzero, true},
      {"round", [](double x) { return std::copysign(std::floor(std::fabs(x) + 0.5), x); }, steps,
       true},
      {"rint", Rint, steps, true},
      {"ceil", [](double x) { return std::ceil(x); }, steps, true},
      {"floor", [](double x) { return std::floor(x); }, steps, true},
      {"trunc", [](double x) { return std::trunc(x); }, steps, true},
      {"fix", [](double x) { return std::trunc(x); }, steps, true},
      {"square", [](double x) { return x * x; }, any, true},
      {"sqrt", [](double x) { return std::pow(x, 0.5); }, positive},
      {"rsqrt", [](double x) { return std::pow(x, -0.5); }, positive},
      {"cbrt", [](double x) { return std::pow(x, 1.0 / 3); }, positive},
      {"rcbrt", [](double x) { return std::pow(x, -1.0 / 3); }, positive},
      {"reciprocal", [](double x) { return 1 / x; }, positive},
      {"exp", [](double x) { return std::pow(M_E, x); }, any},
      {"expm1", [](double x) { return std::pow(M_E, x) - 1; }, any},
      {"log", [](double x) { return std::log2(x) * M_LN2; }, positive},
      {"log10", [](double x) { return std::log(x) / M_LN10; }, positive},
      {"log2", [](double x) { return std::log(x) / M_LN2; }, positive},
      {"log1p", [](double x) { return std::log(1 + x); }, positive},
      {"sin", [](double x) { return std::sin(x); }, any},
      {"cos", [](double x) { return std::cos(x); }, any},
      {"tan", [](double x) { return std::sin(x) / std::cos(x); }, inside},
      {"arcsin", [](double x) { return std::atan2(x, std::sqrt(1 - x * x)); }, inside},
      {"arccos", [](double x) { return std::atan2(std::sqrt(1 - x * x), x); }, inside},
      {"arctan", [](double x) { return std::atan2(x, 1); }, any},
      {"sinh", [](double x) { return (std::exp(x) - std::exp(-x)) / 2; }, any},
      {"cosh", [](double x) { return (std::exp(x) + std::exp(-x)) / 2; }, any},
      {"tanh", [](double x) { return 1 - 2 / (std::exp(2 * x) + 1); }, any},
      {"arcsinh", [](double x) { return std::log(x + std::sqrt(x * x + 1)); }, any},
      {"arccosh", [](double x) { return std::log(x + std::sqrt(x * x - 1)); }, Uniform(1.5, 3)},
      {"arctanh", [](double x) { return std::log((1 + x) / (1 - x)) / 2; }, inside},
      {"degrees", [](double x) { return x * 180 / M_PI; }, any},
      {"radians", [](double x) { return x * M_PI / 180; }, any},
      {"gamma", [](double x) { return std::tgamma(x); }, Uniform(0.5, 4), false, 64},
      {"gammaln", [](double x) { return std::log(std::fabs(std::tgamma(x))); }, Uniform(0.5, 4),
       false, 64},
      {"digamma", DigammaIntegral, Uniform(0.5, 4), false, 256},
      {"erf", [](double x) { return 1 - std::erfc(x); }, any},
      {"erfinv", InverseErf, inside, false, 64},
      {"relu", [](double x) { return std::fmax(x, 0); }, nonzero, true},
      {"sigmoid", [](double x) { return std::exp(x) / (std::exp(x) + 1); }, any},
      {"softsign", [](double x) { return x / (1 + std::fabs(x)); }, nonzero},
      {"negative", [](double x) { return 0 - x; }, any, true},
      {"logical_not", [](double x) { return x == 0 ? 1.0 : 0.0; }, nonzero, true},
      {"zeros_like", [](double) { return 0.0; }, any, true},
      {"ones_like", [](double) { return 1.0; }, any, true},
  };
  return cases;
}

OperatorCase MakeUnaryCase(const UnaryCase& unary, const TShape& shape) {
  OperatorCase c;
  c.name = format("{} {}", unary.op, shape.ToString());
  c.op = unary.op;
  c.shapes = {shape};
  c.inputs = {unary.inputs};
  c.forward = [f = unary.f](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], f)}; };
  c.types = kAllFloatingTypes;
  c.tolerance = {unary.epsilons, "one call of the mathematical library"};
  c.must_accept = {"simple"};
  return c;
}

TEST_CASE("unary functions and their gradients") {
  for (const UnaryCase& unary : UnaryCases()) RunCase(MakeUnaryCase(unary, {3, 5, 2, 3}));
}

TEST_CASE("digamma below zero, and at its poles") {
  constexpr double kEuler = 0.57721566490153286;
  OperatorCase c;
  c.name = c.op = "digamma";
  c.shapes = {{5}};
  c.inputs = {Cycle({-0.5, -1.5, 0.5, 0, -3})};
  const double half = -kEuler - 2 * M_LN2;
  c.forward = [=](const Arrays&, const Arrays&) {
    return Arrays{{half + 2, half + 2 + 2.0 / 3, half, -HUGE_VAL, std::nan("")}};
  };
  // The derivatives: pi^2 / 2 at 1/2, 4 / (n^2) more at each step below it, and the poles.
  c.gradient = [=](const Arrays&, const Arrays&, const Arrays& head) {
    const double square = M_PI * M_PI / 2;
    const double slopes[] = {square + 4, square + 4 + 4.0 / 9, square, HUGE_VAL, HUGE_VAL};
    Values gradient = head[0];
    for (size_t i = 0; i < 5; ++i) gradient[i] *= slopes[i];
    return Arrays{gradient};
  };
  c.tolerance = {64, "a few dozen operations"};
  RunCase(c);
}

TEST_CASE("unary functions of one element and of none, and of more than one thread's piece") {
  for (const TShape& shape : {TShape{1}, TShape{0, 3}, TShape{40001}}) {
    for (const UnaryCase& unary : UnaryCases()) {
      if (std::string(unary.op) == "relu" || std::string(unary.op) == "exp")
        RunCase(MakeUnaryCase(unary, shape));
    }
  }
}

TEST_CASE("whole numbers") {
  for (const UnaryCase& unary : UnaryCases()) {
    if (!unary.integers) continue;
    OperatorCase c = MakeUnaryCase(unary, {7});
    c.inputs = {Cycle({3, -2, 0, 1, 5, -7, 2})};
    c.types = {DType::kInt32, DType::kInt64};
    c.backward = false;
    RunCase(c);
  }
  OperatorCase halves = MakeUnaryCase(UnaryCases()[3], {7});
  REQUIRE(halves.op == "round");
  halves.inputs = {Cycle({0.5, -0.5, 1.5, -2.5, 8388609, 0.5f - 0x1p-25f, -0.5f + 0x1p-25f})};
  halves.backward = false;
  halves.types = {DType::kFloat32, DType::kFloat64};
  RunCase(halves);
  halves.op = "rint";
  halves.forward = [](const Arrays&, const Arrays&) {
    return Arrays{{0, -1, 1, -3, 8388609, 0, 0}};
  };
  RunCase(halves);
}

TEST_CASE("a type without the function is refused at planning time") {
  OperatorCase c = MakeUnaryCase(UnaryCases()[15], {2});
  REQUIRE(c.op == "exp");
  c.types = {DType::kInt32};
  c.must_accept = {};
  const CaseReport report = ExamineCase(c, TestRegistry(), TestBackend());
  REQUIRE(report.kernels.size() == 1);
  CHECK(report.kernels[0].refusal == "no function for int32");
}

TEST_CASE("relu, abs and hard_sigmoid keep a NaN") {
  const double nan = std::nan(""), inf = HUGE_VAL;
  const struct {
    const char* op;
    Values out;
  } cases[] = {{"relu", {nan, 0, inf, 0, 2}},
               {"abs", {nan, inf, inf, 1, 2}},
               {"hard_sigmoid", {nan, 0, 1, 0.3, 0.9}}};
  for (const auto& t : cases) {
    OperatorCase c;
    c.name = format("{} of NaN", t.op);
    c.op = t.op;
    c.shapes = {{5}};
    c.inputs = {Cycle({nan, -inf, inf, -1, 2})};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{t.out}; };
    c.backward = false;
    c.types = kAllFloatingTypes;
    RunCase(c);
  }
}

}  // namespace
}  // namespace mxtrain::test
