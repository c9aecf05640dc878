// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "tests/support/case_parts.h"
#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void RunActivation(const std::string& act_type, const ScalarFunction& f,
                   const std::vector<double>& kinks, Tolerance tolerance) {
  for (const TShape& shape : {TShape{7}, TShape{1, 1}, TShape{3, 0}, TShape{3, 5, 7},
                              TShape{2, 11, 3, 3}, TShape{3, 70001}}) {
    OperatorCase c;
    c.name = act_type + " " + shape.ToString();
    c.op = "Activation";
    c.kwargs = {{"act_type", act_type}};
    c.shapes = {shape};
    c.inputs = {UniformAwayFrom(-4, 4, kinks)};
    c.forward = [&](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], f)}; };
    c.tolerance = tolerance;
    if (act_type == "relu") c.must_accept = {"simd"};
    if (shape.Size() < 10000) {
      c.types = kAllFloatingTypes;
    } else {
      c.backward = false;  // central differences of this many elements are slow
      c.types = {DType::kFloat32};
    }
    RunCase(c);
  }
}

TEST_CASE("Activation: relu") {
  RunActivation("relu", [](double x) { return std::max(x, 0.0); }, {0},
                {0, "a comparison and a copy"});
}
TEST_CASE("Activation: sigmoid") {
  RunActivation("sigmoid", [](double x) { return 1 / (1 + std::exp(-x)); }, {},
                {8, "an exponential and a division"});
}
TEST_CASE("Activation: tanh") {
  RunActivation("tanh", [](double x) { return std::tanh(x); }, {}, {8, "the library's tanh"});
}
TEST_CASE("Activation: softrelu") {
  RunActivation("softrelu", [](double x) { return std::log(1 + std::exp(x)); }, {},
                {16, "an exponential and a logarithm"});
}
TEST_CASE("Activation: softsign") {
  RunActivation("softsign", [](double x) { return x / (1 + std::abs(x)); }, {0}, {8, "a division"});
}

TEST_CASE("Activation: the limits of float") {
  const double inf = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  const auto run = [&](const std::string& act_type, const Values& x, const Values& y,
                       const Values& gradient) {
    OperatorCase c;
    c.name = act_type + " at the limits";
    c.op = "Activation";
    c.kwargs = {{"act_type", act_type}};
    c.shapes = {TShape{static_cast<int64_t>(x.size())}};
    c.inputs = {Cycle(x)};
    c.forward = [&](const Arrays&, const Arrays&) { return Arrays{y}; };
    c.gradient = [&](const Arrays&, const Arrays&, const Arrays& head) {
      return Arrays{Apply(head[0], gradient, std::multiplies<>())};
    };
    RunCase(c);
  };
  run("relu", {nan, 0, -inf, inf, -1, 1}, {nan, 0, 0, inf, 0, 1}, {0, 0, 0, 1, 0, 1});
  run("sigmoid", {-200, 200, 0}, {0, 1, .5}, {0, 0, .25});
  run("softrelu", {25, 100, -100}, {25, 100, 0}, {1 - std::exp(-25), 1, 0});
}

TEST_CASE("Activation: parameters") {
  CHECK_THROWS_WITH_AS(TestRegistry().Create("Activation", {}), doctest::Contains("act_type"),
                       Error);
  CHECK_THROWS_WITH_AS(TestRegistry().Create("Activation", {{"act_type", "rleu"}}),
                       doctest::Contains("relu"), Error);
}

TEST_CASE("Activation: shapes are inferred both ways") {
  const auto property = TestRegistry().Create("Activation", {{"act_type", "relu"}});
  std::vector<TShape> in = {TShape{-1, 3}}, out = {TShape{4, -1}}, aux;
  CHECK(property->InferShape(&in, &out, &aux));
  CHECK(in[0] == TShape{4, 3});
  CHECK(out[0] == TShape{4, 3});
  out = {TShape{5, 3}};
  CHECK_THROWS_AS(property->InferShape(&in, &out, &aux), Error);
}

}  // namespace
}  // namespace mxtrain::test
