// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <cmath>

#include "tests/support/operator_case.h"

namespace mxtrain::test {
namespace {

double Softplus(double x) {
  return x > 30 ? x : std::log1p(std::exp(x));
}

void ExamineSmoothActivation(const std::string& op, const Kwargs& kwargs, double (*f)(double),
                             const std::vector<double>& bends = {}) {
  for (const TShape& shape : {TShape{2, 3, 3, 5}, TShape{0, 4}, TShape{20011}}) {
    OperatorCase c;
    c.op = op;
    c.name = format("{} {}", op, shape.ToString());
    c.kwargs = kwargs;
    c.shapes = {shape};
    c.inputs = {UniformAwayFrom(-6, 6, bends, 0.02)};
    c.forward = [f](const Arrays& in, const Arrays&) { return Arrays{Apply(in[0], f)}; };
    if (shape.Size() < 1000) c.types = kAllFloatingTypes;
    c.tolerance = {32, "elementary functions of a few units in the last place"};
    c.must_accept = {"simple"};
    RunCase(c);
  }
}

TEST_CASE("activations that are given by their value") {
  ExamineSmoothActivation("gelu", {},
                          [](double x) { return x * 0.5 * std::erfc(-x / std::sqrt(2.0)); });
  ExamineSmoothActivation("gelu", {{"approximate", "tanh"}}, [](double x) {
    return 0.5 * x *
           (1 + std::tanh(std::sqrt(2 / 3.14159265358979324) * (x + 0.044715 * std::pow(x, 3))));
  });
  ExamineSmoothActivation("silu", {}, [](double x) { return x / (1 + std::exp(-x)); });
  ExamineSmoothActivation("mish", {}, [](double x) { return x * std::tanh(Softplus(x)); });
  ExamineSmoothActivation("hard_swish", {},
                          [](double x) { return x <= -3  ? 0
                                                : x >= 3 ? x
                                                         : x * (x + 3) / 6; },
                          {-3, 3});
  ExamineSmoothActivation("log_sigmoid", {}, [](double x) { return -Softplus(-x); });
}

TEST_CASE("zero stays zero where the functor says so") {
  const auto elementwise = [](const char* op) {
    return TestRegistry().Create(op, {})->elementwise();
  };
  for (const char* op : {"gelu", "silu", "mish", "hard_swish"})
    CHECK(elementwise(op) == Elementwise::kZeroToZero);
  CHECK(elementwise("log_sigmoid") == Elementwise::kYes);
  CHECK(TestRegistry().Create("smooth_l1", {{"scalar", "inf"}})->elementwise() ==
        Elementwise::kYes);
}

}  // namespace
}  // namespace mxtrain::test
