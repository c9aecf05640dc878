// SPDX-License-Identifier: Apache-2.0
#include "mxtrain/operator/dual.h"

#include <doctest/doctest.h>

namespace mxtrain {
namespace {

// Each function once for numbers and dual numbers.
template <typename F>
void ExamineFunction(const char* name, F f) {
  CAPTURE(name);
  for (double x = -4.03; x < 4; x += 0.37) {
    const double h = 1e-5, quotient = (f(x + h) - f(x - h)) / (2 * h);
    const Dual<double> y = f(Dual<double>(x, 1.0));
    CHECK(y.value == doctest::Approx(f(x)));
    CHECK(y.slope == doctest::Approx(quotient).epsilon(1e-6));
    // The derivative of f(2 x) is twice as large.
    CHECK(f(Dual<double>(x, 2.0)).slope == doctest::Approx(2 * quotient).epsilon(1e-6));
  }
}

TEST_CASE("dual numbers differentiate") {
  using namespace vector_math;
  ExamineFunction("a quotient", [](auto x) {
    using T = decltype(x);
    return (x * x - T(3)) / (x * x + T(1)) - x;
  });
  ExamineFunction("a choice", [](auto x) {
    using T = decltype(x);
    return x < T(0.5) ? -x * x : x > T(2) ? T(7) : x;
  });
  ExamineFunction("exp", [](auto x) { return Exp(x * decltype(x)(0.5)); });
  ExamineFunction("tanh", [](auto x) { return Tanh(x); });
  ExamineFunction("sigmoid", [](auto x) { return Sigmoid(x * x); });
  ExamineFunction("softplus", [](auto x) { return Softplus(x) * x; });
  ExamineFunction("log", [](auto x) { return vector_math::Log(x * x + decltype(x)(0.5)); });
  ExamineFunction("log1p", [](auto x) { return Log1p(x * x); });
  ExamineFunction("pow", [](auto x) {
    using T = decltype(x);
    T base = x * x;
    base += T(0.25);
    return Pow(base, x);
  });
  ExamineFunction("erf", [](auto x) { return Erf(x); });
}

}  // namespace
}  // namespace mxtrain
