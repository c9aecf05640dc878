// SPDX-License-Identifier: Apache-2.0
// Functors whose gradient is not the derivative, and a polynomial (operators/quadratic).
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

void ExamineGradientChange(const std::string& op, const Kwargs& kwargs, double (*f)(double),
                           std::optional<double> slope) {
  for (const TShape& shape : {TShape{2, 3, 3, 5}, TShape{0, 4}, TShape{1}}) {
    OperatorCase c;
    c.op = op;
    c.name = format("{} {}", op, shape.ToString());
    c.kwargs = kwargs;
    c.shapes = {shape};
    c.inputs = {UniformAwayFrom(-3, 3, {-2.5, -1.5, -0.5, 0, 0.5, 1.5, 2.5}, 0.02)};
    c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], f)}; };
    if (slope) {
      c.gradient = [=](const Arrays&, const Arrays&, const Arrays& head) {
        return Arrays{Apply(head[0], [=](double g) { return *slope * g; })};
      };
    }
    c.types = kAllFloatingTypes;
    c.tolerance = {8, "a few products"};
    c.must_accept = {"simple"};
    RunCase(c);
  }
}

TEST_CASE("gradient changes: identity, rounding and sign with another gradient") {
  ExamineGradientChange(
      "_contrib_gradientmultiplier", {{"scalar", "-0.75"}}, [](double x) { return x; }, -0.75);
  ExamineGradientChange(
      "gradientmultiplier", {}, [](double x) { return x; }, 1.0);
  ExamineGradientChange(
      "round_ste", {}, [](double x) { return std::round(x); }, 1.0);
  ExamineGradientChange(
      "sign_ste", {}, [](double x) { return x > 0 ? 1.0 : -1.0; }, 1.0);
}

TEST_CASE("quadratic") {
  ExamineGradientChange(
      "_contrib_quadratic", {{"a", "2"}, {"b", "-0.5"}, {"c", "3"}},
      [](double x) { return 2 * x * x - 0.5 * x + 3; }, std::nullopt);
  ExamineGradientChange(
      "quadratic", {}, [](double) { return 0.0; }, std::nullopt);
}

}  // namespace
}  // namespace mxtrain::test
