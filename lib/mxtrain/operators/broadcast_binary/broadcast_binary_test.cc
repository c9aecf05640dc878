// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

using Function = double (*)(double, double);

// [2, 1, 3] with [1, 4, 3], by definition.
Values Broadcast(const Values& a, const Values& b, Function f) {
  Values out;
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 4; ++j) {
      for (int k = 0; k < 3; ++k) out.push_back(f(a[i * 3 + k], b[j * 3 + k]));
    }
  }
  return out;
}

TEST_CASE("axes of length one are repeated, and summed over in the gradient") {
  const Generator low = Cycle({-1.5, 0.25, 1.75, -0.25, 0.75}),
                  high = Cycle({-1, -0.5, 1.25, 1.5, 0.5, 2, -1.75});
  const struct {
    const char* op;
    Function f;
    Generator a, b;
  } cases[] = {
      {"broadcast_add", [](double a, double b) { return a + b; }, low, high},
      {"broadcast_sub", [](double a, double b) { return a - b; }, low, high},
      {"broadcast_mul", [](double a, double b) { return a * b; }, low, high},
      {"broadcast_div", [](double a, double b) { return a / b; }, low, high},
      {"broadcast_power", [](double a, double b) { return std::exp2(b * std::log2(a)); },
       Uniform(0.5, 2), low},
      {"broadcast_maximum", [](double a, double b) { return std::fmax(a, b); }, low, high},
      {"broadcast_minimum", [](double a, double b) { return std::fmin(a, b); }, low, high},
      {"broadcast_mod", [](double a, double b) { return a - b * std::floor(a / b); },
       Uniform(2.1, 2.4), Uniform(0.85, 0.95)},
      {"broadcast_hypot", [](double a, double b) { return std::sqrt(a * a + b * b); }, low, high},
      {"broadcast_equal", [](double a, double b) { return a == b ? 1.0 : 0.0; }, low, high},
      {"broadcast_greater", [](double a, double b) { return a > b ? 1.0 : 0.0; }, low, high},
      {"broadcast_lesser_equal", [](double a, double b) { return a > b ? 0.0 : 1.0; }, low, high},
      {"broadcast_logical_xor", [](double a, double b) { return (a == 0) == (b == 0) ? 0.0 : 1.0; },
       low, high},
  };
  for (const auto& t : cases) {
    OperatorCase c;
    c.name = c.op = t.op;
    c.shapes = {TShape{2, 1, 3}, TShape{1, 4, 3}};
    c.inputs = {t.a, t.b};
    c.forward = [f = t.f](const Arrays& in, const Arrays&) {
      return Arrays{Broadcast(in[0], in[1], f)};
    };
    c.tolerance = {32, "a few operations and a short sum"};
    c.must_accept = {"simple"};
    RunCase(c);
    c.name += ", equal shapes";
    c.shapes = {TShape{5}, TShape{5}};
    c.forward = [f = t.f](const Arrays& in, const Arrays&) {
      return Arrays{Apply(in[0], in[1], f)};
    };
    c.types = kAllFloatingTypes;
    RunCase(c);
  }
}

TEST_CASE("shapes that do not broadcast") {
  const auto add = TestRegistry().Create("broadcast_plus", {});
  std::vector<TShape> in = {TShape{2, 3}, TShape{3, 3}}, out(1), aux;
  CHECK_THROWS_WITH(add->InferShape(&in, &out, &aux),
                    doctest::Contains("shapes [2, 3] and [3, 3] do not broadcast"));
}

}  // namespace
}  // namespace mxtrain::test
